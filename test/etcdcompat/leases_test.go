package etcdcompat

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"golang.org/x/sync/errgroup"
)

// until polls for a condition, and says how long it took.
func until(t *testing.T, what string, within time.Duration, ok func() bool) time.Duration {
	t.Helper()
	begin := time.Now()
	for !ok() {
		if time.Since(begin) > within {
			t.Fatalf("%s: not within %v", what, within)
		}
		time.Sleep(10 * time.Millisecond)
	}
	return time.Since(begin)
}

func session(t *testing.T, c *clientv3.Client, ttl int) *concurrency.Session {
	t.Helper()
	s, err := concurrency.NewSession(c, concurrency.WithTTL(ttl))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestGrantedTimesAnswerAsEtcd compares what times are granted with what etcd
// grants.
func TestGrantedTimesAnswerAsEtcd(t *testing.T) {
	var answers [2]string
	for i, s := range []*system{startEtcd(t), startAweigh(t, 1)} {
		c := s.client(t, 0)
		for _, ttl := range []int64{-1 << 62, -1, 0, 1, 2, 3, 1000, 9_000_000_000, 9_000_000_001, 1 << 62} {
			g, err := c.Grant(t.Context(), ttl)
			if err != nil {
				answers[i] += fmt.Sprintf("%d: %v; ", ttl, err)
				continue
			}
			left, err := c.TimeToLive(t.Context(), g.ID)
			if err != nil || g.ID <= 0 {
				t.Fatal(g.ID, err)
			}
			answers[i] += fmt.Sprintf("%d: granted %d, %d; ", ttl, g.TTL, left.GrantedTTL)
			if _, err := c.Revoke(t.Context(), g.ID); err != nil {
				t.Fatal(err)
			}
		}
	}
	if answers[0] != answers[1] {
		t.Errorf("etcd   %s\naweigh %s", answers[0], answers[1])
	}
}

// TestLeaseExpiresOnTime: not before its TTL, and soon after that and half as much again, at every node.
func TestLeaseExpiresOnTime(t *testing.T) {
	s := startAweigh(t, 4)
	c := s.client(t, 0)
	begin := time.Now()
	g, err := c.Grant(t.Context(), 3)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		if _, err := c.Put(t.Context(), fmt.Sprint("e/", i), "x", clientv3.WithLease(g.ID)); err != nil {
			t.Fatal(err)
		}
	}
	var group errgroup.Group
	for i := range s.addresses {
		c := s.client(t, i)
		group.Go(func() error {
			events := c.Watch(t.Context(), "e/", clientv3.WithPrefix(), clientv3.WithFilterPut())
			r := <-events
			took := time.Since(begin)
			if r.Err() != nil || len(r.Events) != 20 || r.Events[0].Kv.ModRevision != r.Events[19].Kv.ModRevision {
				return fmt.Errorf("node %d: %+v", i, r)
			}
			if took < 3*time.Second || took > 7*time.Second {
				return fmt.Errorf("node %d: a lease of 3 s ended after %v", i, took)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Error(err)
	}
}

// TestMutexOfEtcdsClientExcludes: clients of all nodes take turns, through etcd's
// recipe and through its service of locks.
func TestMutexOfEtcdsClientExcludes(t *testing.T) {
	s := startAweigh(t, 4)
	var inside, turns atomic.Int32
	var group errgroup.Group
	const each = 5
	for i := range s.addresses {
		c := s.client(t, i)
		group.Go(func() error {
			session, err := concurrency.NewSession(c, concurrency.WithTTL(30))
			if err != nil {
				return err
			}
			defer session.Close()
			m := concurrency.NewMutex(session, "mutex")
			for range each {
				if err := m.Lock(t.Context()); err != nil {
					return err
				}
				if n := inside.Add(1); n != 1 {
					return fmt.Errorf("%d hold the lock", n)
				}
				turns.Add(1)
				resp, err := c.Txn(t.Context()).If(m.IsOwner()).Then(clientv3.OpPut("turn", fmt.Sprint(i))).Commit()
				inside.Add(-1)
				if err != nil || !resp.Succeeded {
					return fmt.Errorf("who holds the lock is not its owner: %v", err)
				}
				if err := m.Unlock(t.Context()); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	if n := turns.Load(); int(n) != each*len(s.addresses) {
		t.Errorf("%d turns", n)
	}
}

// TestLockGoesOnWhenItsHolderDies: whose client is gone, and keeps its lease alive
// no more, holds the lock for no longer than that lasts.
func TestLockGoesOnWhenItsHolderDies(t *testing.T) {
	s := startAweigh(t, 4)
	first, second := s.client(t, 0), s.client(t, 1)
	one, two := session(t, first, 2), session(t, second, 30)
	if err := concurrency.NewMutex(one, "m").Lock(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := concurrency.NewMutex(two, "m").TryLock(t.Context()); !errors.Is(err, concurrency.ErrLocked) {
		t.Fatalf("a lock that is held: %v", err)
	}
	_ = first.Close() // as if it died: nothing is revoked
	begin := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := concurrency.NewMutex(two, "m").Lock(ctx); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(begin); took > 6*time.Second {
		t.Errorf("a lock on a lease of 2 s went on after %v", took)
	}
}

// TestElectionOfEtcdsClient: one leads at a time, who observes hears of each, and
// the next one leads when it resigns or its session ends.
func TestElectionOfEtcdsClient(t *testing.T) {
	s := startAweigh(t, 4)
	heard := concurrency.NewElection(session(t, s.client(t, 3), 30), "e").Observe(t.Context())
	hear := func(want string) {
		t.Helper()
		select {
		case r := <-heard:
			if got := string(r.Kvs[0].Value); got != want {
				t.Fatalf("%s leads, not %s", got, want)
			}
		case <-time.After(20 * time.Second):
			t.Fatalf("nobody hears that %s leads", want)
		}
	}
	sessions := make([]*concurrency.Session, 3)
	elections := make([]*concurrency.Election, 3)
	won := make([]chan error, 3)
	for i := range elections {
		sessions[i] = session(t, s.client(t, i), 30)
		elections[i] = concurrency.NewElection(sessions[i], "e")
		won[i] = make(chan error, 1)
		go func() { won[i] <- elections[i].Campaign(t.Context(), fmt.Sprint("candidate ", i)) }()
		until(t, "the candidate stands in line", 10*time.Second, func() bool {
			r, err := s.client(t, i).Get(t.Context(), "e/", clientv3.WithPrefix(), clientv3.WithCountOnly())
			return err == nil && int(r.Count) == i+1
		})
	}
	for i := range elections {
		if err := <-won[i]; err != nil {
			t.Fatal(err)
		}
		hear(fmt.Sprint("candidate ", i))
		if i == 1 {
			if err := sessions[i].Close(); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err := elections[i].Proclaim(t.Context(), fmt.Sprint("president ", i)); err != nil {
			t.Fatal(err)
		}
		hear(fmt.Sprint("president ", i))
		if err := elections[i].Resign(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// TestKeepAliveSurvivesTheNodeThatServesIt: a client of two nodes, of which one is
// killed, loses nothing that it keeps alive; what nobody keeps alive goes.
func TestKeepAliveSurvivesTheNodeThatServesIt(t *testing.T) {
	s := startAweigh(t, 4)
	c, other := newClient(t, s.addresses[0], s.addresses[1]), s.client(t, 2)
	kept, err := c.Grant(t.Context(), 6)
	if err != nil {
		t.Fatal(err)
	}
	left, err := c.Grant(t.Context(), 6)
	if err != nil {
		t.Fatal(err)
	}
	for key, id := range map[string]clientv3.LeaseID{"kept": kept.ID, "left": left.ID} { // order-free: each is put alone
		if _, err := c.Put(t.Context(), key, "x", clientv3.WithLease(id)); err != nil {
			t.Fatal(err)
		}
	}
	alive, err := c.KeepAlive(t.Context(), kept.ID)
	if err != nil {
		t.Fatal(err)
	}
	<-alive
	s.kill(t, 0)
	there := func(key string) bool {
		r, err := other.Get(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		return r.Count == 1
	}
	until(t, "what nobody keeps alive goes", 25*time.Second, func() bool { return !there("left") })
	for end := time.Now().Add(12 * time.Second); time.Now().Before(end); {
		select {
		case r, ok := <-alive:
			if !ok {
				t.Fatal("the client gave up to keep its lease alive")
			}
			if r.TTL != 6 {
				t.Fatalf("%v", r)
			}
		case <-time.After(10 * time.Second):
			t.Fatal("no keep-alive for 10 s")
		}
		if !there("kept") {
			t.Fatal("the key went although its lease was kept alive")
		}
	}
	if _, err := other.KeepAliveOnce(t.Context(), left.ID); !errors.Is(err, rpctypes.ErrLeaseNotFound) {
		t.Errorf("a lease that is over: %v", err)
	}
}
