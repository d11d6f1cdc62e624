package etcd

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/aweigh/aweigh/etcd/etcdpb"
	"github.com/aweigh/aweigh/node"
)

// What is read for an answer takes memory several times: as pairs and as a message; in the gateway as a message that
// was decoded, and as JSON with base64 as well.
const (
	answerWeight  = 2
	gatewayWeight = 8
	gatewayAnswer = 8 << 20 // bytes of an answer in the gateway
)

var errTooMuchJSON = errors.New("etcd: too much for the JSON gateway")

var errGatewayAnswer = status.Errorf(codes.ResourceExhausted, "aweigh: the answer has more than the %d MiB that the JSON gateway sends; "+
	"read in pages, with limit and a key after the last one of the page before, or use gRPC", gatewayAnswer>>20)

// reads reports whether a method's answers are counted while they are read and sent.
func reads(service, method string) bool {
	return service == etcdpb.KV_ServiceDesc.ServiceName && (method == "Range" || method == "Txn")
}

// answering begins the answer to a call. A call of the gateway counts for the answer to the request of HTTP that it
// belongs to; then own is false.
func (s *service) answering(ctx context.Context) (_ context.Context, a *node.Answer, own bool) {
	if byGateway(ctx) {
		id := strings.Join(metadata.ValueFromIncomingContext(ctx, gatewayRequest), "")
		if a, ok := s.requested.Load(id); ok {
			return a.(*node.Answer).In(ctx), a.(*node.Answer), false
		}
	}
	address := peerOf(ctx)
	a = s.node.Answers().New(answerWeight, 0, nil, func() { s.conns.cut(address) })
	return a.In(ctx), a, true
}

// sent returns a call's answer as it is sent: if it holds a part of the budget, until the client has taken it.
func (s *service) sent(ctx context.Context, a *node.Answer, answer any, err error) any {
	m, ok := answer.(proto.Message)
	if err != nil || !ok || !a.Large() {
		a.Return()
		return answer
	}
	l := &lent{message: m, of: a}
	l.gone = s.conns.whenClosed(peerOf(ctx), a.Return)
	return l
}

// lent is an answer that holds a part of the budget until gRPC has written the last of it.
type lent struct {
	message proto.Message
	of      *node.Answer
	gone    func()       // the connection's end need not return it any more
	parts   atomic.Int32 // that are not written yet
}

// Get is for mem.BufferPool, and never called.
func (*lent) Get(n int) *[]byte { b := make([]byte, n); return &b }

// Put implements mem.BufferPool: a part was written, or thrown away.
func (l *lent) Put(*[]byte) {
	l.of.Moved()
	if l.parts.Add(-1) == 0 {
		l.gone()
		l.of.Return()
	}
}

// encode is the message as gRPC takes it.
func (l *lent) encode() (out mem.BufferSlice, err error) {
	l.parts.Store(1)
	defer l.Put(nil)
	all, err := proto.Marshal(l.message)
	if err != nil {
		return nil, err
	}
	l.message = nil
	for len(all) > 0 {
		n := min(partBytes, len(all))
		part := all[:n:n]
		if all = all[n:]; mem.IsBelowBufferPoolingThreshold(n) {
			out = append(out, mem.SliceBuffer(part))
			continue
		}
		l.parts.Add(1)
		out = append(out, mem.NewBuffer(&part, l))
	}
	return out, nil
}

// gatewayRequest is the metadata in which the gateway names the request that a call belongs to.
const gatewayRequest = "aweigh-gateway-request"

type requestKey struct{}

// requestID returns the identity of a request of HTTP, "" if it has none.
func requestID(r *http.Request) string {
	id, _ := r.Context().Value(requestKey{}).(string)
	return id
}

// requesting gives a request of HTTP an identity and an answer, until done.
func (s *service) requesting(r *http.Request) (_ *http.Request, done func()) {
	id := strconv.FormatUint(s.numbered.Add(1), 10)
	a := s.node.Answers().New(gatewayWeight, gatewayAnswer, errTooMuchJSON, nil) // what its client takes is timed
	s.requested.Store(id, a)
	return r.WithContext(context.WithValue(r.Context(), requestKey{}, id)), func() {
		s.requested.Delete(id)
		a.Return()
	}
}
