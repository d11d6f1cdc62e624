package e2e

import (
	"fmt"
	"io"
	"net"
	"regexp"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/aweigh/aweigh/internal/testshort"
)

// link carries the connections that one node makes to another, while it is open.
type link struct {
	listener net.Listener
	target   string       // host:port
	carried  atomic.Int64 // bytes, both ways

	mu      sync.Mutex
	state   linkState
	changed chan struct{} // closed when the state changes
	conns   map[net.Conn]struct{}
}

type linkState int

const (
	open linkState = iota
	held           // connections stay, but nothing moves
	cut            // connections break, and new ones too
)

func newLink(target string) (*link, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	k := &link{listener: l, target: target, changed: make(chan struct{}), conns: make(map[net.Conn]struct{})}
	go k.serve()
	return k, nil
}

func (l *link) serve() {
	for {
		from, err := l.listener.Accept()
		if err != nil {
			return
		}
		go l.join(from)
	}
}

// join connects a connection with the target.
func (l *link) join(from net.Conn) {
	defer from.Close()
	if !l.flows() {
		return
	}
	to, err := net.Dial("tcp", l.target)
	if err != nil {
		return
	}
	defer to.Close()
	for _, c := range []net.Conn{from, to} {
		if !l.enter(c) {
			return
		}
		defer l.leave(c)
	}
	var both sync.WaitGroup
	both.Go(func() { l.carry(from, to) })
	both.Go(func() { l.carry(to, from) })
	both.Wait()
}

// enter notes a connection, so that set can break it.
func (l *link) enter(c net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conns[c] = struct{}{}
	return l.state != cut
}

func (l *link) leave(c net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.conns, c)
}

// carry moves bytes until either end breaks.
func (l *link) carry(to, from net.Conn) {
	defer to.Close()
	defer from.Close()
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 && !l.flows() {
			return
		}
		l.carried.Add(int64(n))
		if _, failed := to.Write(buffer[:n]); failed != nil || err != nil {
			return
		}
	}
}

// flows waits while the link is held, and reports whether it is open then.
func (l *link) flows() bool {
	for {
		l.mu.Lock()
		state, changed := l.state, l.changed
		l.mu.Unlock()
		if state != held {
			return state == open
		}
		<-changed
	}
}

func (l *link) set(s linkState) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.state = s
	close(l.changed)
	l.changed = make(chan struct{})
	if s == cut {
		for c := range l.conns {
			_ = c.Close()
		}
	}
}

func (l *link) close() {
	if l != nil {
		_ = l.listener.Close()
		l.set(cut)
	}
}

var peerInLine = regexp.MustCompile(`peer: "(\w+)"`)

// link puts a link between every two nodes in each direction. A node announces
// an address where nobody listens: the links are the only way.
func (n *network) link(lines []string) {
	n.t.Helper()
	n.links = make([][]*link, len(n.nodes))
	for i, p := range n.nodes {
		n.links[i] = make([]*link, len(n.nodes))
		p.extra = []string{"--announce", "/ip4/127.0.0.1/tcp/1"}
		for j, other := range n.nodes {
			if i == j {
				continue
			}
			l, err := newLink(other.p2p)
			if err != nil {
				n.t.Fatal(err)
			}
			n.links[i][j] = l
			peer := peerInLine.FindStringSubmatch(lines[j])
			if peer == nil {
				n.t.Fatalf("no peer in %q", lines[j])
			}
			_, port, _ := net.SplitHostPort(l.listener.Addr().String())
			p.extra = append(p.extra, "--bootstrap", fmt.Sprintf("/ip4/127.0.0.1/tcp/%s/p2p/%s", port, peer[1]))
		}
	}
}

// isolate changes all links of a node, in both directions.
func (n *network) isolate(node int, s linkState) {
	for other := range n.nodes {
		if other != node {
			n.links[node][other].set(s)
			n.links[other][node].set(s)
		}
	}
}

// carried is how many bytes have passed all links.
func (n *network) carried() (total int64) {
	for _, row := range n.links {
		for _, l := range row {
			if l != nil {
				total += l.carried.Load()
			}
		}
	}
	return total
}

// TestLinksHoldAndCut is about the harness itself: a fault that is not one
// would prove nothing.
func TestLinksHoldAndCut(t *testing.T) {
	testshort.SkipUnlessLong(t)
	target, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer target.Close()
	arrived := make(chan string, 10)
	go func() {
		for {
			c, err := target.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				b := make([]byte, 1)
				for {
					if _, err := io.ReadFull(c, b); err != nil {
						arrived <- "end"
						return
					}
					arrived <- string(b)
				}
			}()
		}
	}()
	l, err := newLink(target.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer l.close()
	c, err := net.Dial("tcp", l.listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	say := func(s string) {
		if _, err := c.Write([]byte(s)); err != nil {
			t.Fatal(err)
		}
	}
	expect := func(want string) {
		t.Helper()
		if got := <-arrived; got != want {
			t.Fatalf("%q arrived, want %q", got, want)
		}
	}
	say("a")
	expect("a")
	l.set(held)
	say("b")
	if got := l.carried.Load(); got != 1 || len(arrived) > 0 {
		t.Fatalf("%d bytes passed a link that is held after one", got)
	}
	l.set(open)
	expect("b")
	l.set(cut)
	expect("end")
	again, err := net.Dial("tcp", l.listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if _, err := again.Read(make([]byte, 1)); err == nil {
		t.Fatal("a link that is cut carried a new connection")
	}
}
