package e2e

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/aweigh/aweigh/etcd/etcdpb"
	"github.com/aweigh/aweigh/internal/testshort"
)

// TestKillsThroughEtcdsAPI: while nodes are killed, paused and cut off, clients of etcd's API work on
// registers, a set and a lock, and watch. Every register is one, what is in the set stays there, what a lock
// protects is done once, and watches tell of each change once, in order, whichever node they go on at.
// (A clock that steps, a real process cannot be given: the simulator does that.)
func TestKillsThroughEtcdsAPI(t *testing.T) {
	testshort.SkipUnlessLong(t)
	t.Parallel()
	n := newNetwork(t, 4, true)
	for i, port := range freePorts(t, len(n.nodes)) {
		n.nodes[i].etcd = fmt.Sprintf("127.0.0.1:%d", port)
		n.nodes[i].extra = append(n.nodes[i].extra, "--etcd-listen", n.nodes[i].etcd)
	}
	n.start()
	rng := drawn(t, 11)

	h, set, lock := newHistory(), &setHistory{start: time.Now()}, &lockHistory{done: make(map[int]string)}
	stop := make(chan struct{})
	var working sync.WaitGroup
	for i := range 6 {
		w := &worker{
			history: h, caller: n.etcdClient(i), id: i, rng: rand.New(rand.NewPCG(rng.Uint64(), rng.Uint64())),
			keys: 4, prefix: "/key/", seen: make(map[string]string),
		}
		working.Go(func() { w.run(stop) })
	}
	for i := range 3 {
		c := n.etcdClient(i)
		working.Go(func() { set.work(c, i, stop) })
	}
	for i := range 3 {
		c := n.etcdClient(i + 1)
		working.Go(func() { lock.work(c, i, stop) })
	}
	var watching sync.WaitGroup
	watched, quiet := make([][]change, 3), make(chan int64)
	for i := range watched {
		c := n.etcdClient(i)
		watching.Go(func() { watched[i] = c.watch("/key/", quiet) })
	}
	faults := disturb(t, n, h, rng, *length)
	close(stop)
	working.Wait()
	t.Logf("%d kills, %d pauses, %d times held, %d times cut off in %s", faults[0], faults[1], faults[2], faults[3], *length)

	h.verify(t, n)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	last := n.agreed(30 * time.Second).Header.Revision
	for range watched {
		quiet <- last
	}
	watching.Wait()
	all, err := changes(ctx, n.dial(0), last)
	if err != nil {
		t.Fatal(err)
	}
	all = slices.DeleteFunc(all, func(c change) bool { return !strings.HasPrefix(c.key, "/key/") })
	for i, told := range watched {
		if !slices.Equal(told, all) {
			t.Errorf("watch %d told of %d changes, and there were %d; or they differ", i, len(told), len(all))
		}
	}
	set.read(ctx, n.etcdClient(0))
	wrong := set.wrong()
	wrong = append(wrong, lock.wrong(n.etcdClient(1).value(ctx, t, "/count"))...)
	for i, line := range wrong {
		if i == 20 {
			t.Fatalf("%d more", len(wrong)-i)
		}
		t.Error(line)
	}
	t.Logf("%d watched changes; set: %d added, %d reads; lock: %d increments, %d unknown", len(all), len(set.added), len(set.reads), len(lock.done), lock.unknown)
}

// etcdClient calls one node through etcd's API, and the next one when that is away.
type etcdClient struct {
	conns []*grpc.ClientConn
	at    int
}

// etcdClient is a client that begins with a node.
func (n *network) etcdClient(first int) *etcdClient {
	n.t.Helper()
	c := &etcdClient{at: first % len(n.nodes)}
	for _, p := range n.nodes {
		conn, err := grpc.NewClient(p.etcd, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			n.t.Fatal(err)
		}
		n.t.Cleanup(func() { _ = conn.Close() })
		c.conns = append(c.conns, conn)
	}
	return c
}

func (c *etcdClient) conn() *grpc.ClientConn { return c.conns[c.at] }
func (c *etcdClient) kv() etcdpb.KVClient    { return etcdpb.NewKVClient(c.conn()) }

// gone notes that a call failed, and tells what is known of its effect.
func (c *etcdClient) fate(err error) fate {
	c.at = (c.at + 1) % len(c.conns)
	switch status.Code(err) {
	case codes.ResourceExhausted, codes.InvalidArgument, codes.FailedPrecondition:
		return refused
	case codes.Unavailable:
		if strings.Contains(err.Error(), "dialing") { // it was never sent
			return refused
		}
	}
	return unknown
}

// call implements caller.
func (c *etcdClient) call(ctx context.Context, op *operation) error {
	key := []byte(op.key)
	write := &etcdpb.PutRequest{Key: key, Value: []byte(op.value)}
	switch op.kind {
	case get:
		r, err := c.kv().Range(ctx, &etcdpb.RangeRequest{Key: key})
		if err != nil {
			return err
		}
		if len(r.Kvs) > 0 {
			op.read = string(r.Kvs[0].Value)
		}
		op.revision = r.Header.Revision
	case put:
		r, err := c.kv().Put(ctx, write)
		if err != nil {
			return err
		}
		op.revision = r.Header.Revision
	case del:
		r, err := c.kv().DeleteRange(ctx, &etcdpb.DeleteRangeRequest{Key: key})
		if err != nil {
			return err
		}
		op.revision = r.Header.Revision
	case swap:
		was := &etcdpb.Compare{Key: key, Target: etcdpb.Compare_VERSION, TargetUnion: &etcdpb.Compare_Version{}}
		if op.old != "" {
			was = &etcdpb.Compare{Key: key, Target: etcdpb.Compare_VALUE, TargetUnion: &etcdpb.Compare_Value{Value: []byte(op.old)}}
		}
		r, err := c.kv().Txn(ctx, &etcdpb.TxnRequest{
			Compare: []*etcdpb.Compare{was},
			Success: []*etcdpb.RequestOp{{Request: &etcdpb.RequestOp_RequestPut{RequestPut: write}}},
		})
		if err != nil {
			return err
		}
		op.held, op.revision = r.Succeeded, r.Header.Revision
	}
	return nil
}

func (c *etcdClient) value(ctx context.Context, t *testing.T, key string) string {
	t.Helper()
	op := operation{kind: get, key: key}
	if err := c.call(ctx, &op); err != nil {
		t.Fatal(err)
	}
	return op.read
}

// watch gives the changes below a prefix, from the first revision to the last one, which until tells. Where a node is
// away, it goes on at another, from the revision after the last one that it heard of.
func (c *etcdClient) watch(prefix string, until <-chan int64) (all []change) {
	next, last := int64(1), int64(0)
	for {
		ctx, cancel := context.WithTimeout(context.Background(), patience) // and now and then for no reason
		stream, err := etcdpb.NewWatchClient(c.conn()).Watch(ctx)
		if err == nil {
			err = stream.Send(&etcdpb.WatchRequest{RequestUnion: &etcdpb.WatchRequest_CreateRequest{CreateRequest: &etcdpb.WatchCreateRequest{
				Key: []byte(prefix), RangeEnd: []byte(prefix[:len(prefix)-1] + "0"), StartRevision: next, ProgressNotify: true,
			}}})
		}
		for err == nil {
			var r *etcdpb.WatchResponse
			if r, err = stream.Recv(); err != nil || r.Canceled {
				break
			}
			for _, e := range r.Events {
				x := change{revision: e.Kv.ModRevision, key: string(e.Kv.Key)}
				if e.Type == etcdpb.Event_PUT {
					x.value = string(e.Kv.Value)
				}
				all, next = append(all, x), e.Kv.ModRevision+1
			}
		}
		cancel()
		c.at = (c.at + 1) % len(c.conns)
		select {
		case last = <-until:
		case <-time.After(20 * time.Millisecond):
		}
		if last > 0 {
			r, err := c.kv().Range(context.Background(), &etcdpb.RangeRequest{Key: []byte(prefix), RangeEnd: []byte(prefix[:len(prefix)-1] + "0"), MinModRevision: next, CountOnly: false, KeysOnly: true})
			if err == nil && len(r.Kvs) == 0 {
				return all
			}
		}
	}
}

// setHistory is what clients did with a set: the keys below /set/.
type setHistory struct {
	start time.Time
	mu    sync.Mutex
	added []addition
	reads []setRead
}

type addition struct {
	element      string
	call, answer time.Duration // since the start
	fate         fate
}

type setRead struct {
	call, answer time.Duration
	elements     map[string]bool
}

func (s *setHistory) work(c *etcdClient, id int, stop <-chan struct{}) {
	for i := 0; ; i++ {
		select {
		case <-stop:
			return
		case <-time.After(10 * time.Millisecond):
		}
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		a := addition{element: fmt.Sprintf("/set/%d.%d", id, i), call: time.Since(s.start)}
		if _, err := c.kv().Put(ctx, &etcdpb.PutRequest{Key: []byte(a.element), Value: []byte(a.element)}); err != nil {
			a.fate = c.fate(err)
		}
		a.answer = time.Since(s.start)
		s.mu.Lock()
		s.added = append(s.added, a)
		s.mu.Unlock()
		if i%10 == 0 {
			s.read(ctx, c)
		}
		cancel()
	}
}

func (s *setHistory) read(ctx context.Context, c *etcdClient) {
	r := setRead{call: time.Since(s.start), elements: make(map[string]bool)}
	res, err := c.kv().Range(ctx, &etcdpb.RangeRequest{Key: []byte("/set/"), RangeEnd: []byte("/set0"), KeysOnly: true})
	if err != nil {
		_ = c.fate(err)
		return
	}
	for _, kv := range res.Kvs {
		r.elements[string(kv.Key)] = true
	}
	r.answer = time.Since(s.start)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads = append(s.reads, r)
}

// wrong reports what reads lack, or have, that they must, or must not.
func (s *setHistory) wrong() (wrong []string) {
	if len(s.reads) == 0 {
		return []string{"nobody read the set"}
	}
	by := make(map[string]addition)
	for _, a := range s.added {
		by[a.element] = a
		for _, r := range s.reads {
			if a.fate == done && a.answer < r.call && !r.elements[a.element] {
				wrong = append(wrong, fmt.Sprintf("%s was added by %s, and a read at %s lacks it", a.element, a.answer, r.call))
			}
		}
	}
	for _, r := range s.reads {
		for e := range r.elements {
			if a, known := by[e]; !known || a.fate == refused || a.call > r.answer {
				wrong = append(wrong, fmt.Sprintf("a read at %s has %s, which nobody can have added", r.call, e))
			}
		}
	}
	slices.SortFunc(s.reads, func(a, b setRead) int { return int(a.answer - b.answer) })
	for i, r := range s.reads {
		for _, later := range s.reads[i+1:] {
			if r.answer < later.call && len(later.elements) < len(r.elements) {
				wrong = append(wrong, fmt.Sprintf("a read at %s had %d elements, and a later one %d", r.call, len(r.elements), len(later.elements)))
			}
		}
	}
	return wrong
}

// lockHistory is what clients did under a lock: each adds one to a count, on the condition that it holds the lock
// still.
type lockHistory struct {
	mu      sync.Mutex
	done    map[int]string // who made the count what
	twice   []string
	unknown int
}

func (l *lockHistory) work(c *etcdClient, id int, stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		case <-time.After(20 * time.Millisecond):
		}
		ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
		if err := l.increment(ctx, c, id); err != nil {
			_ = c.fate(err)
		}
		cancel()
	}
}

func (l *lockHistory) increment(ctx context.Context, c *etcdClient, id int) error {
	leases := etcdpb.NewLeaseClient(c.conn())
	g, err := leases.LeaseGrant(ctx, &etcdpb.LeaseGrantRequest{TTL: 5})
	if err != nil {
		return err
	}
	held, err := etcdpb.NewLockClient(c.conn()).Lock(ctx, &etcdpb.LockRequest{Name: []byte("/lock"), Lease: g.ID})
	if err != nil {
		return err
	}
	op := operation{kind: get, key: "/count"}
	if err := c.call(ctx, &op); err != nil {
		return err
	}
	count, _ := strconv.Atoi(strings.TrimPrefix(op.read, "count "))
	r, err := c.kv().Txn(ctx, &etcdpb.TxnRequest{
		Compare: []*etcdpb.Compare{{Key: held.Key, Target: etcdpb.Compare_CREATE, Result: etcdpb.Compare_GREATER, TargetUnion: &etcdpb.Compare_CreateRevision{}}},
		Success: []*etcdpb.RequestOp{{Request: &etcdpb.RequestOp_RequestPut{RequestPut: &etcdpb.PutRequest{Key: []byte("/count"), Value: fmt.Appendf(nil, "count %d", count+1)}}}},
	})
	l.mu.Lock()
	who := fmt.Sprintf("client %d", id)
	switch {
	case err != nil:
		l.unknown++
	case r.Succeeded && l.done[count+1] != "":
		l.twice = append(l.twice, fmt.Sprintf("%s and %s both made the count %d", who, l.done[count+1], count+1))
	case r.Succeeded:
		l.done[count+1] = who
	}
	l.mu.Unlock()
	if err != nil {
		return err
	}
	_, err = leases.LeaseRevoke(ctx, &etcdpb.LeaseRevokeRequest{ID: g.ID})
	return err
}

// wrong reports what the lock did not protect, given the count in the end.
func (l *lockHistory) wrong(last string) (wrong []string) {
	count, _ := strconv.Atoi(strings.TrimPrefix(last, "count "))
	if len(l.done) == 0 || count < len(l.done) || count > len(l.done)+l.unknown {
		wrong = append(wrong, fmt.Sprintf("the count is %d after %d increments and %d of which nobody knows", count, len(l.done), l.unknown))
	}
	if most := slices.Max(append(slices.Collect(maps.Keys(l.done)), 0)); most > count {
		wrong = append(wrong, fmt.Sprintf("the count was %d, and is %d", most, count))
	}
	return append(wrong, l.twice...)
}
