package etcd

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/aweigh/aweigh/etcd/etcdpb"
	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/internal/testwait"
	"github.com/aweigh/aweigh/node"
)

// TestRangesStayInTheirBudget has many clients read 24 MiB each at once, by gRPC and the gateway: the memory that they
// take is bounded, and all by gRPC get what they ask for.
func TestRangesStayInTheirBudget(t *testing.T) {
	testshort.Skip(t)
	const budget, size, puts, readers = 8 << 20, 1 << 20, 24, 12
	w := newWorldOf(t, 1, Config{}, node.Config{AnswerMemory: budget})
	for i := range puts {
		w.put(t, fmt.Sprintf("/k%02d", i), value(i, size))
	}
	used := func() int64 { return w.node.Answers().Counts().Used }
	url := "http://" + w.server.Addr() + "/v3/kv/range"
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Second)
	defer cancel()
	var all sync.WaitGroup
	for range readers {
		all.Go(func() {
			r, err := w.Range(ctx, &etcdpb.RangeRequest{Key: []byte("/"), RangeEnd: []byte("0"), Serializable: true})
			if err != nil || len(r.Kvs) != puts {
				t.Errorf("%d keys, %v", len(r.GetKvs()), err)
			}
		})
		all.Go(func() {
			code, text := ask(t, http.DefaultClient, http.MethodPost, url, `{"key":"Lw==","range_end":"MA==","serializable":true}`)
			if code != http.StatusTooManyRequests || !strings.Contains(text, "JSON gateway") && !strings.Contains(text, "too many requests") {
				t.Errorf("the gateway answers %d: %.200s", code, text)
			}
		})
	}
	done := make(chan struct{})
	go func() { all.Wait(); close(done) }()
	var most int64
	for running := true; running; {
		select {
		case <-done:
			running = false
		case <-time.After(5 * time.Millisecond):
			most = max(most, used())
		}
	}
	if most > budget+max(answerWeight*(puts+2)*size, gatewayWeight*(gatewayAnswer+2*size)) {
		t.Errorf("answers held %d MiB, more than the budget and one answer", most>>20)
	}
	testwait.Until(t, "all is returned", func() bool { return used() == 0 })
	code, text := ask(t, http.DefaultClient, http.MethodPost, url, `{"key":"Lw==","range_end":"MA==","limit":4}`)
	if code != http.StatusOK || strings.Count(text, `"key"`) != 4 || used() != 0 {
		t.Errorf("a page by the gateway: %d, %.200s, and %d bytes are held", code, text, used())
	}
	if parts, n, err := w.stream(t, &etcdpb.RangeRequest{Key: []byte("/"), RangeEnd: []byte("0")}); err != nil || n < 2 || len(parts.Kvs) != puts {
		t.Errorf("as a stream: %d keys in %d parts, %v", len(parts.GetKvs()), n, err)
	}
	testwait.Until(t, "all is returned", func() bool { return used() == 0 })
}

// heldConns are connections of a client that reads nothing while they are held.
type heldConns struct {
	mu  sync.Mutex
	all []net.Conn
}

type heldConn struct {
	net.Conn
	of *heldConns
}

func (h *heldConns) dial(ctx context.Context, address string) (net.Conn, error) {
	c, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	h.all = append(h.all, c)
	return &heldConn{c, h}, err
}

// Read implements io.Reader.
func (c *heldConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	return n, err
}

// close ends the connections, and reads again.
func (h *heldConns) close() {
	for _, c := range h.all {
		_ = c.Close()
	}
	h.mu.Unlock()
}

// TestAnswersEndWithTheirClients: a client that goes away, or takes nothing, keeps no part of the budget.
func TestAnswersEndWithTheirClients(t *testing.T) {
	testshort.Skip(t)
	const size, puts = 1 << 20, 12
	w := newWorldOf(t, 1, Config{}, node.Config{AnswerMemory: 2 << 20, WatchSlow: 200 * time.Millisecond})
	for i := range puts {
		w.put(t, fmt.Sprintf("/k%02d", i), value(i, size))
	}
	all := &etcdpb.RangeRequest{Key: []byte("/"), RangeEnd: []byte("0"), Serializable: true}
	for name, leaves := range map[string]bool{"leaves": true, "takes nothing": false} { // order-free: each alone
		h := &heldConns{}
		conn, err := grpc.NewClient(w.server.Addr(), grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithContextDialer(h.dial),
			grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxAnswer)))
		if err != nil {
			t.Fatal(err)
		}
		kv := etcdpb.NewKVClient(conn)
		if _, err := kv.Range(w.ctx, &etcdpb.RangeRequest{Key: []byte("/k00"), Serializable: true}); err != nil {
			t.Fatal(err)
		}
		h.mu.Lock() // the client reads nothing from here on
		ended := make(chan error, 1)
		go func() { _, err := kv.Range(w.ctx, all); ended <- err }()
		testwait.Until(t, "the answer is read", func() bool { return w.node.Answers().Counts().Used > puts*size })
		if leaves {
			h.close()
			testwait.Until(t, name+": all is returned", func() bool { return w.node.Answers().Counts().Used == 0 })
		}
		if r, err := w.Range(w.ctx, all); err != nil || len(r.Kvs) != puts {
			t.Errorf("%s: another client gets %d keys, %v", name, len(r.GetKvs()), err)
		}
		if !leaves {
			h.close()
		}
		if err := <-ended; err == nil {
			t.Errorf("%s: it got its answer", name)
		}
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
		testwait.Until(t, name+": all is returned", func() bool { return w.node.Answers().Counts().Used == 0 })
	}
}
