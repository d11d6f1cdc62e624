package hostile

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/client"
	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/internal/testwait"
	"github.com/aweigh/aweigh/node"
	"github.com/aweigh/aweigh/scope"
)

const (
	jsonType  = "application/json"
	protoType = "application/proto"
)

// api is a hostile client of node i.
func (x *net4) api(i int) Client { return Client{Address: x.daemons[i].API()} }

// answers holds every node's API to answering an honest client: a write, and a
// read of it.
func (x *net4) answers(t testing.TB) {
	t.Helper()
	for i := range x.daemons {
		c, err := client.Dial(x.daemons[i].API())
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		key := fmt.Appendf(nil, "/api/%d", x.written.Add(1))
		_, err = c.Put(ctx, &aweighv1.PutRequest{Key: key, Value: []byte("v")})
		if err == nil {
			_, err = c.Get(ctx, key)
		}
		cancel()
		_ = c.Close()
		if err != nil {
			t.Fatalf("node %d does not answer: %v", i, err)
		}
	}
}

// TestBadRequestsAreRefused: each is answered with an error that says so, and
// never with one of the server's own.
func TestBadRequestsAreRefused(t *testing.T) {
	testshort.SkipUnlessLong(t)
	t.Parallel()
	x := newNetwork(t, 4)
	c := x.api(0)
	nested := func(depth int) []byte {
		return []byte(strings.Repeat(`{"success":[{"txn":`, depth) + "{}" + strings.Repeat("}]}", depth))
	}
	deep := []byte{} // a transaction in a transaction, in protobuf: Op{txn} in success
	for range 20 {
		op := append([]byte{4<<3 | 2}, length(deep)...)
		op = append(op, deep...)
		deep = append(append([]byte{2<<3 | 2}, length(op)...), op...)
	}
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	if _, err := io.CopyN(z, zeros{}, 1<<30); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	negative, err := proto.Marshal(&aweighv1.RangeRequest{Key: []byte("/"), Limit: -1})
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range []struct {
		name, method, kind string
		body               []byte
		header             []string
		status             int
	}{
		{"malformed JSON", "Put", jsonType, []byte(`{"key":`), nil, 400},
		{"wrong JSON", "Put", jsonType, []byte(`{"key":7,"nobody":[]}`), nil, 400},
		{"JSON nested to death", "Put", jsonType, bytes.Repeat([]byte(`{"once":`), 100_000), nil, 400},
		{"malformed protobuf", "Put", protoType, []byte{0xff, 0xff, 0xff}, nil, 400},
		{"truncated protobuf", "Put", protoType, []byte{0x0a, 0x7f, 'k'}, nil, 400},
		{"oversized body", "Put", protoType, make([]byte, 5<<20), nil, 429},
		{"gzip bomb", "Put", protoType, bomb.Bytes(), []string{"Content-Encoding", "gzip"}, 429},
		{"wrong content type", "Put", "text/html", []byte("<html>"), nil, 415},
		{"no content type", "Put", "", nil, nil, 415},
		{"unknown compression", "Put", protoType, nil, []string{"Content-Encoding", "br"}, 501},
		{"unknown method", "Obey", protoType, nil, nil, 404},
		{"transactions 9 deep", "Txn", jsonType, nested(9), nil, 400},
		{"transactions 1,000 deep", "Txn", jsonType, nested(1000), nil, 400},
		{"transactions 20 deep in protobuf", "Txn", protoType, deep, nil, 400},
		{"negative limit", "Range", protoType, negative, nil, 400},
		{"no key", "Range", protoType, nil, nil, 400},
		{"a bundle of garbage", "Submit", jsonType, []byte(`{"bundle":"AAAA"}`), nil, 400},
		{"foreign Host", "Put", protoType, nil, []string{"Host", "evil.example"}, 403},
		{"foreign Origin", "Put", protoType, nil, []string{"Origin", "http://evil.example"}, 403},
		{"negative timeout", "Status", jsonType, []byte("{}"), []string{"Connect-Timeout-Ms", "-1"}, 400},
	} {
		t.Run(a.name, func(t *testing.T) {
			status, answer, err := c.Call(a.method, a.kind, a.body, a.header...)
			if err != nil || status != a.status {
				t.Errorf("status %d, %v, not %d: %.300s", status, err, a.status, answer)
			}
		})
	}
	for name, raw := range map[string]string{
		"no HTTP":         "\x00\x01\x02\x03\r\n\r\n",
		"endless header":  "GET / HTTP/1.1\r\nHost: localhost\r\nX: " + strings.Repeat("x", 1<<20) + "\r\n\r\n",
		"two lengths":     "POST /aweigh.v1.Node/Put HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx",
		"negative length": "POST /aweigh.v1.Node/Put HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
		"no Host":         "GET /health HTTP/1.1\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			if status, err := c.Raw([]byte(raw), 20*time.Second); err != nil || status != 0 && (status < 400 || status >= 500) {
				t.Errorf("status %d, %v", status, err)
			}
		})
	}
	x.answers(t)
}

// length is a varint of less than 16,384.
func length(b []byte) []byte { return []byte{byte(len(b)) | 0x80, byte(len(b) >> 7)} }

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// idle opens n connections, each of which sends the same beginning.
func (c Client) idle(t *testing.T, n int, beginning string) []net.Conn {
	t.Helper()
	var all []net.Conn
	for range n {
		conn, err := net.Dial("tcp", c.Address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		if _, err := io.WriteString(conn, beginning); err != nil {
			continue // it was closed to make room
		}
		all = append(all, conn)
	}
	return all
}

// TestIdleConnectionsKeepNoClientOut: more connections than the server keeps, which
// say nothing, half of a header, or half of a body.
func TestIdleConnectionsKeepNoClientOut(t *testing.T) {
	testshort.SkipUnlessLong(t)
	t.Parallel()
	x := newNetwork(t, 4)
	before := inUse()
	for name, beginning := range map[string]string{
		"silent":      "",
		"slow header": "POST /aweigh.v1.Node/Put HTTP/1.1\r\nHost: local",
		"upgraded":    "GET /aweigh.v1.Node HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: aweigh-grpc\r\n\r\n",
		"slow body":   "POST /aweigh.v1.Node/Put HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/proto\r\nContent-Length: 1000\r\n\r\nxx",
	} {
		t.Run(name, func(t *testing.T) {
			all := x.api(0).idle(t, 2500, beginning)
			x.answers(t)
			for _, conn := range all {
				_ = conn.Close()
			}
		})
	}
	if after := inUse(); after > before+heapBound {
		t.Errorf("%d MiB of heap in use, and %d before", after>>20, before>>20)
	}
}

// motion opens a motion that nobody else approves, and gives its ID.
func (x *net4) motion(t testing.TB) []byte {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	p := x.Genesis.Policy
	p.EpochBlocks++
	if _, err := x.node(0).Root().Govern(ctx, scope.Decision{Kind: scope.SetPolicy, Policy: &p}, node.Once{}); err != nil {
		t.Fatal(err)
	}
	open, _, err := x.node(0).Motions(false)
	if err != nil || len(open) != 1 {
		t.Fatalf("%d motions are open, %v", len(open), err)
	}
	return open[0].ID[:]
}

// watching is a request to watch, by HTTP/1 and by its body alone.
func watching(t testing.TB, method string, m proto.Message) (request string, envelope []byte) {
	t.Helper()
	body, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	envelope = append([]byte{0, 0, 0, 0, byte(len(body))}, body...)
	return fmt.Sprintf("POST /aweigh.v1.Node/%s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/connect+proto\r\nContent-Length: %d\r\n\r\n%s",
		method, len(envelope), envelope), envelope
}

// TestWatchFloodIsBounded: watches of keys and of a motion beyond the limit are told so,
// those that are never read hold up nobody, and requests are answered beside them.
func TestWatchFloodIsBounded(t *testing.T) {
	testshort.SkipUnlessLong(t)
	x := newNetwork(t, 4)
	watches := map[string]proto.Message{
		"Watch":       &aweighv1.WatchRequest{Key: []byte("/"), RangeEnd: []byte("0"), StartRevision: 1, Progress: true},
		"WatchMotion": &aweighv1.MotionRequest{Id: x.motion(t)},
	}
	before := inUse()
	var all []net.Conn
	for method, m := range watches {
		request, _ := watching(t, method, m)
		all = append(all, x.api(0).idle(t, 576, request)...) // more than are taken, lest some end; none of them is read
	}
	for method, m := range watches {
		_, envelope := watching(t, method, m)
		testwait.Until(t, "one more "+method+" is refused", func() bool {
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
			defer cancel()
			req, err := http.NewRequestWithContext(ctx, "POST", "http://"+x.daemons[0].API()+"/aweigh.v1.Node/"+method, bytes.NewReader(envelope))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Content-Type", "application/connect+proto")
			transport := &http.Transport{DisableKeepAlives: true}
			defer transport.CloseIdleConnections()
			resp, err := (&http.Client{Transport: transport}).Do(req)
			if err != nil {
				return false
			}
			defer resp.Body.Close()
			return resp.StatusCode == http.StatusTooManyRequests
		})
	}
	for range 5 {
		x.answers(t)
	}
	if after := inUse(); after > before+heapBound {
		t.Errorf("%d MiB of heap in use, and %d before", after>>20, before>>20)
	}
	for _, conn := range all {
		_ = conn.Close()
	}
	for method, m := range watches {
		request, _ := watching(t, method, m)
		testwait.Until(t, method+" is possible again", func() bool {
			status, err := x.api(0).Raw([]byte(request), 5*time.Second)
			return err == nil && status == http.StatusOK
		})
	}
}

// TestHugeRangesHoldNothingUp: ranges over everything, in and out of transactions,
// many at once.
func TestHugeRangesHoldNothingUp(t *testing.T) {
	testshort.SkipUnlessLong(t)
	x := newNetwork(t, 4)
	for range 50 {
		x.commits(t)
	}
	before := inUse()
	rang, err := proto.Marshal(&aweighv1.RangeRequest{Key: []byte{0}, RangeEnd: []byte{0}, Serializable: true})
	if err != nil {
		t.Fatal(err)
	}
	inside := &aweighv1.TxnRequest{}
	for range 128 {
		inside.Success = append(inside.Success, &aweighv1.Op{Op: &aweighv1.Op_Range{Range: &aweighv1.RangeRequest{Key: []byte{0}, RangeEnd: []byte{0}}}})
	}
	txn, err := proto.Marshal(inside)
	if err != nil {
		t.Fatal(err)
	}
	var flood sync.WaitGroup
	for range 16 {
		flood.Add(1)
		go func() {
			defer flood.Done()
			for range 4 {
				if status, answer, err := x.api(0).Call("Range", protoType, rang); err != nil || status != 200 {
					t.Errorf("range: status %d, %v: %.200s", status, err, answer)
				}
				if status, answer, err := x.api(1).Call("Txn", protoType, txn); err != nil || status >= 500 && status != 503 && status != 504 {
					t.Errorf("txn: status %d, %v: %.200s", status, err, answer)
				}
			}
		}()
	}
	x.answers(t)
	flood.Wait()
	x.answers(t)
	if after := inUse(); after > before+heapBound {
		t.Errorf("%d MiB of heap in use, and %d before", after>>20, before>>20)
	}
}
