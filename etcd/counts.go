package etcd

import (
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
)

// Counts are totals of a server since its start, except fields with "now".
type Counts struct {
	Version        string // of etcd, as in answers to clients
	ClusterVersion string
	Member         uint64 // etcd's number for this node
	Watches        int64  // now
	Received, Sent uint64 // bytes of messages, as they are without compression
	Methods        []MethodCounts
}

// MethodCounts are the counts of the calls of one method.
type MethodCounts struct {
	Service, Method string
	Kind            string // "unary", "server_stream" or "bidi_stream"
	Started         uint64
	Handled         [Codes]uint64 // ended, by the code with which they did
}

// Codes is how many codes of gRPC there are, from 0.
const Codes = codes.Unauthenticated + 1

// Counts are as of now.
func (s *Server) Counts() Counts {
	x := s.service
	c := Counts{
		Version: apiVersion, ClusterVersion: clusterVersion, Member: x.member, Watches: x.watches.Load(),
		Received: x.counted.received.Load(), Sent: x.counted.sent.Load(),
	}
	for _, m := range x.counted.methods {
		of := MethodCounts{Service: m.service, Method: m.method, Kind: m.kind}
		for i := range of.Handled {
			of.Handled[i] = m.handled[i].Load()
		}
		of.Started = m.started.Load() // last, so that none ended which did not start
		c.Methods = append(c.Methods, of)
	}
	return c
}

// counted holds the server's counters. Nothing in it needs a lock once all methods
// are named.
type counted struct {
	methods        []*methodCounts
	streams        map[string]*methodCounts // by the full name of the method
	received, sent atomic.Uint64
}

type methodCounts struct {
	service, method, kind string
	started               atomic.Uint64
	handled               [Codes]atomic.Uint64
}

// unary is the kind of calls that are no streams.
const unary = "unary"

func kindOf(d grpc.StreamDesc) string {
	if d.ClientStreams {
		return "bidi_stream" // no method is a stream of the client's alone
	}
	return "server_stream"
}

// method makes room for a method.
func (c *counted) method(service, method, kind string) *methodCounts {
	m := &methodCounts{service: service, method: method, kind: kind}
	c.methods = append(c.methods, m)
	if kind != unary {
		c.streams["/"+service+"/"+method] = m
	}
	return m
}

// start counts a call; of a method that has no room it does nothing.
func (m *methodCounts) start() {
	if m != nil {
		m.started.Add(1)
	}
}

// end counts the end of a call by the code that the client gets.
func (m *methodCounts) end(err error) {
	if m == nil {
		return
	}
	s, ok := status.FromError(err)
	if !ok {
		s = status.FromContextError(err) // as gRPC does
	}
	m.handled[min(s.Code(), Codes-1)].Add(1)
}

// codec is gRPC's own, and counts the bytes of messages.
type codec struct {
	encoding.CodecV2
	*counted
}

func newCodec(c *counted) codec { return codec{encoding.GetCodecV2(proto.Name), c} }

// Marshal implements encoding.CodecV2.
func (c codec) Marshal(message any) (mem.BufferSlice, error) {
	var out mem.BufferSlice
	var err error
	switch m := message.(type) {
	case *delivery:
		out, err = m.encode()
	case *lent:
		out, err = m.encode()
	default:
		out, err = c.CodecV2.Marshal(message)
	}
	c.sent.Add(uint64(out.Len()))
	return out, err
}

// Unmarshal implements encoding.CodecV2.
func (c codec) Unmarshal(in mem.BufferSlice, message any) error {
	c.received.Add(uint64(in.Len()))
	return c.CodecV2.Unmarshal(in, message)
}
