package requestlog

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"
	"unicode/utf8"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/aweigh/aweigh/internal/authn"
)

// line is one request.
type line struct {
	Kind    string    `json:"kind"` // request
	Time    string    `json:"time"`
	Node    string    `json:"node,omitempty"`
	Port    string    `json:"port"`             // api or etcd
	Call    string    `json:"call"`             // service and method
	Caller  string    `json:"caller,omitempty"` // as authn.Identity; none if it was not recognized
	Keys    []keyText `json:"keys,omitempty"`
	Outcome string    `json:"outcome"` // refused, done, failed, or begun for a stream of answers
	Code    string    `json:"code,omitempty"`
	Reason  string    `json:"reason,omitempty"`
}

// keyText is a range of keys. Bytes that are not UTF-8 are replaced.
type keyText struct {
	Key string `json:"key"`
	End string `json:"range_end,omitempty"`
}

// Bounds of the texts in a line, in bytes.
const (
	maxCall   = 128
	maxReason = 512
)

// ErrBegun is the outcome of a read that is a stream, when its request came. It is no error of a request.
var ErrBegun = errors.New("begun")

// Note records a request to a port, if its level says so. sees is that of its method, and err the answer's, nil for
// none. A nil Log records nothing.
func (l *Log) Note(ctx context.Context, port, call string, request any, sees Sight, err error) {
	if l == nil {
		return
	}
	code, refused := codeOf(err), Refused(err)
	if !refused && !l.wantsReads {
		return
	}
	keys, reads := sees.of(request)
	level := levelOf(l.cfg.Rules, keys, reads)
	if level == None || !refused && (level < Request || !reads) {
		return
	}
	x := line{
		Kind: "request", Time: time.Now().UTC().Format("2006-01-02T15:04:05.000000000Z"), Node: l.cfg.Node, Port: port,
		Call: text([]byte(strings.TrimPrefix(call, "/")), maxCall), Outcome: "done",
	}
	if id, ok := authn.FromContext(ctx); ok {
		x.Caller = id.String()
	}
	for i := range keys {
		x.Keys = append(x.Keys, keyText{text(keys[i].Key, maxBytes), text(keys[i].End, maxBytes)})
	}
	switch {
	case errors.Is(err, ErrBegun):
		x.Outcome = "begun"
	case err != nil:
		x.Outcome, x.Code, x.Reason = "failed", code.String(), text([]byte(messageOf(err)), maxReason)
		if refused {
			x.Outcome = "refused"
		}
	}
	l.put(&x)
}

// Refused reports whether an error refuses a caller.
func Refused(err error) bool {
	code := codeOf(err)
	return code == codes.PermissionDenied || code == codes.Unauthenticated || errors.As(err, new(Refusal))
}

// Refusal is an error that refuses a caller, and whose code does not show it.
type Refusal struct{ Cause error }

// Error implements error.
func (r Refusal) Error() string { return r.Cause.Error() }

// Unwrap gives the cause.
func (r Refusal) Unwrap() error { return r.Cause }

// codeOf is the code of an error of Connect or gRPC, whose numbers are the same.
func codeOf(err error) codes.Code {
	var c interface{ GRPCStatus() *status.Status }
	if err == nil || errors.Is(err, ErrBegun) {
		return codes.OK
	}
	if errors.As(err, &c) {
		return c.GRPCStatus().Code()
	}
	return connectCode(err)
}

func messageOf(err error) string {
	if s, ok := status.FromError(err); ok {
		return s.Message()
	}
	return err.Error()
}

// text is at most so many bytes as UTF-8.
func text(b []byte, most int) string {
	if len(b) > most {
		b = b[:most]
		for len(b) > 0 && !utf8.Valid(b) && len(b) > most-utf8.UTFMax {
			b = b[:len(b)-1]
		}
	}
	return strings.ToValidUTF8(string(b), "\uFFFD")
}

func (x *line) encode() []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(x) // it holds texts alone
	return b.Bytes()
}
