package etcdcompat

import (
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"
)

// TestTransactionalMemoryLosesNoIncrement adds to one key from clients of all
// nodes, with the software transactional memory of etcd's client.
func TestTransactionalMemoryLosesNoIncrement(t *testing.T) {
	s := startAweigh(t, 4)
	const each = 10
	var group errgroup.Group
	for i := range s.addresses {
		c := s.client(t, i)
		group.Go(func() error {
			for range each {
				if _, err := concurrency.NewSTM(c, func(m concurrency.STM) error {
					n, _ := strconv.Atoi(m.Get("count"))
					m.Put("count", strconv.Itoa(n+1))
					return nil
				}); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	resp, err := s.client(t, 0).Get(t.Context(), "count")
	if err != nil {
		t.Fatal(err)
	}
	if got := string(resp.Kvs[0].Value); got != strconv.Itoa(each*len(s.addresses)) {
		t.Errorf("%d times 1 is %s", each*len(s.addresses), got)
	}
}

// TestWatchesSurviveBrokenConnections watches through a proxy that drops its
// connections again and again.
func TestWatchesSurviveBrokenConnections(t *testing.T) {
	s := startAweigh(t, 4)
	p := newProxy(t, s.addresses[0])
	c := newClient(t, p.listener.Addr().String())
	events := c.Watch(t.Context(), "w/", clientv3.WithPrefix(), clientv3.WithRev(1))
	const count = 300
	var writing sync.WaitGroup
	writing.Go(func() {
		for i := range count {
			if i%20 == 10 {
				p.drop()
			}
			if _, err := s.client(t, 1).Put(t.Context(), fmt.Sprintf("w/%03d", i), "x"); err != nil {
				t.Error(err)
				return
			}
		}
	})
	expect(t, events, count)
	writing.Wait()
	if p.dropped() < 5 {
		t.Errorf("only %d connections were dropped", p.dropped())
	}
}

// TestWatchesMoveToAnotherNode watches at two nodes, of which one is killed.
func TestWatchesMoveToAnotherNode(t *testing.T) {
	s := startAweigh(t, 4)
	c := newClient(t, s.addresses[0], s.addresses[1])
	events := c.Watch(t.Context(), "w/", clientv3.WithPrefix(), clientv3.WithRev(1))
	const count = 200
	var writing sync.WaitGroup
	writing.Go(func() {
		for i := range count {
			if i == count/2 {
				s.kill(t, 0)
			}
			if _, err := s.client(t, 2).Put(t.Context(), fmt.Sprintf("w/%03d", i), "x"); err != nil {
				t.Error(err)
				return
			}
		}
	})
	expect(t, events, count)
	writing.Wait()
}

// expect reads so many events, which must be the keys in their order, each once.
func expect(t *testing.T, events clientv3.WatchChan, count int) {
	t.Helper()
	deadline := time.After(time.Minute)
	for next := 0; next < count; {
		select {
		case r, ok := <-events:
			if !ok || r.Err() != nil {
				t.Fatalf("after %d events the watch ended: %v", next, r.Err())
			}
			for _, e := range r.Events {
				if want := fmt.Sprintf("w/%03d", next); string(e.Kv.Key) != want {
					t.Fatalf("event %d is of %s, not of %s", next, e.Kv.Key, want)
				}
				next++
			}
		case <-deadline:
			t.Fatalf("%d events of %d came", next, count)
		}
	}
}

func newClient(t *testing.T, addresses ...string) *clientv3.Client {
	t.Helper()
	c, err := clientv3.New(clientv3.Config{Endpoints: addresses, DialTimeout: 10 * time.Second, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// kill ends a node of a devnet as a crash does.
func (s *system) kill(t *testing.T, node int) {
	raw, err := os.ReadFile(filepath.Join(s.dir, fmt.Sprintf("node%d", node+1), "node.pid"))
	if err != nil {
		t.Error(err)
		return
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(raw)))
	if err == nil {
		err = syscall.Kill(pid, syscall.SIGKILL)
	}
	if err != nil {
		t.Error(err)
	}
}

// proxy passes bytes on, and can drop all connections.
type proxy struct {
	listener net.Listener
	to       string

	mu    sync.Mutex
	conns []net.Conn
	count int
}

func newProxy(t *testing.T, to string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: l, to: to}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go p.pass(c)
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		p.drop()
	})
	return p
}

func (p *proxy) pass(c net.Conn) {
	defer c.Close()
	far, err := net.Dial("tcp", p.to)
	if err != nil {
		return
	}
	defer far.Close()
	p.mu.Lock()
	p.conns = append(p.conns, c, far)
	p.mu.Unlock()
	go func() { _, _ = io.Copy(far, c) }()
	_, _ = io.Copy(c, far)
}

func (p *proxy) drop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.count += len(p.conns) / 2
	for _, c := range p.conns {
		_ = c.Close()
	}
	p.conns = nil
}

func (p *proxy) dropped() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.count
}
