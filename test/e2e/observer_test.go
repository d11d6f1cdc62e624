package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"sync"
	"testing"
	"time"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/client"
	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/scope"
)

// TestObserverFollows: a node that is no anchor joins with an invite, gets
// all that was written, follows, reads, and passes writes on once the policy lists it.
func TestObserverFollows(t *testing.T) {
	testshort.SkipUnlessLong(t)
	t.Parallel()
	const writes = 3000
	n := newNetwork(t, 4, false)
	n.start()
	n.fill(0, writes)
	state := n.agreed(20 * time.Second)

	invite := n.invite()
	ports := freePorts(t, 2)
	o := newProcess(n, "observer", ports[0], ports[1])
	if err := os.Mkdir(o.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	o.startAs("join", invite, "--data-dir", o.dir, "--name", o.name, "--listen", o.listen, "--api-listen", o.api, "--insecure",
		"--log-level", *level)
	t.Cleanup(func() { o.signal(sigKill) })
	reaches := func(height uint64) func(context.Context) error {
		return func(ctx context.Context) error {
			s, err := o.status(ctx)
			if err == nil && s.Header.Height < height {
				err = fmt.Errorf("height %d of %d", s.Header.Height, height)
			}
			return err
		}
	}
	until(t, 60*time.Second, "the observer catches up", reaches(state.Header.Height))
	t.Logf("%d blocks with %d writes came in %s", state.Header.Height, writes, time.Since(began).Round(time.Millisecond))
	s, err := o.status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if s.Header.Height > state.Header.Height { // an empty block came since
		state = n.agreed(20 * time.Second)
		if s, err = o.status(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if len(s.Anchor) > 0 || s.Header.Height == state.Header.Height && string(s.StateDigest) != string(state.StateDigest) {
		t.Errorf("the observer is anchor %x, and in state %x, not %x", s.Anchor, s.StateDigest, state.StateDigest)
	}
	until(t, 5*time.Second, "it says so", func(context.Context) error {
		text, err := os.ReadFile(o.log())
		for _, want := range []string{`(?m)^api +` + regexp.QuoteMeta(o.api), `(?m)^ready`} {
			if err == nil && !regexp.MustCompile(want).Match(text) {
				err = fmt.Errorf("no %s in %q", want, text)
			}
		}
		return err
	})

	c, err := client.Dial(o.api)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	t.Run("reads", func(t *testing.T) {
		resp, err := c.Range(within(t, 10*time.Second), &aweighv1.RangeRequest{Key: []byte("/fill/"), RangeEnd: []byte("/fill0"), CountOnly: true, Serializable: true})
		if err != nil || resp.Count != writes {
			t.Errorf("%v, %v, want %d keys", resp, err, writes)
		}
	})
	t.Run("follows", func(t *testing.T) {
		// What is acknowledged elsewhere is seen here by a linearizable read, which
		// fetches the block and does not wait for a timer: that would take 10 s.
		began := time.Now()
		for i := range 20 {
			value := fmt.Sprint(i)
			if _, err := n.dial(i%4).Put(within(t, 10*time.Second), putOf("/new", value)); err != nil {
				t.Fatal(err)
			}
			kv, err := c.Get(within(t, 10*time.Second), []byte("/new"))
			if err != nil || string(kv.Value) != value {
				t.Fatalf("%v, %v, want %s", kv, err, value)
			}
		}
		took := time.Since(began)
		t.Logf("20 writes and reads took %s", took.Round(time.Millisecond))
		if took > 5*time.Second {
			t.Errorf("20 writes and reads took %s", took)
		}
	})
	t.Run("passes writes on", func(t *testing.T) {
		if _, err := c.Put(within(t, 10*time.Second), putOf("/from-observer", "0")); !errors.Is(err, client.ErrDenied) {
			t.Errorf("a write of a node that the policy does not list: %v", err)
		}
		key, ok := scope.PeerKey(s.Peer)
		if !ok {
			t.Fatalf("peer %q", s.Peer)
		}
		out := n.must("auth", "grant", "observer", "--public-key", key.String(), "--prefix", "/from-observer", "--api", n.nodes[0].api)
		approve := regexp.MustCompile(`aweigh policy approve ([0-9a-f]{8})`).FindStringSubmatch(out)
		if approve == nil {
			t.Fatalf("the grant does not say how to approve it:\n%s", out)
		}
		for _, x := range n.nodes[1:3] {
			n.must("policy", "approve", approve[1], "--api", x.api)
		}
		n.must("put", "/step", "1", "--api", n.nodes[0].api) // a block after the one that ends the epoch
		until(t, 20*time.Second, "the observer may write", func(ctx context.Context) error {
			_, err := c.Put(ctx, putOf("/from-observer", "0"))
			return err
		})
		put, err := c.Put(within(t, 10*time.Second), putOf("/from-observer", "1"))
		if err != nil {
			t.Fatal(err)
		}
		kv, err := n.dial(2).Get(within(t, 10*time.Second), []byte("/from-observer"))
		if err != nil || string(kv.Value) != "1" || kv.ModRevision != put.Header.Revision {
			t.Errorf("%v, %v, want revision %d", kv, err, put.Header.Revision)
		}
	})
	t.Run("comes back", func(t *testing.T) {
		if code := o.signal(sigTerm); code != 0 {
			t.Errorf("exit code %d", code)
		}
		n.fill(writes, writes+500)
		state := n.agreed(20 * time.Second)
		o.start()
		began := time.Now()
		until(t, 30*time.Second, "the observer catches up again", reaches(state.Header.Height))
		t.Logf("caught up again in %s", time.Since(began).Round(time.Millisecond))
	})
}

// fill puts the keys /fill/FROM up to, and without, /fill/TO, many at a time.
func (n *network) fill(from, to int) {
	n.t.Helper()
	const clients = 32
	began := time.Now()
	errs := make([]error, clients)
	var all sync.WaitGroup
	for i := range clients {
		c := n.dial(i % len(n.nodes))
		all.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			for k := from + i; k < to && errs[i] == nil; k += clients {
				_, errs[i] = c.Put(ctx, putOf(fmt.Sprintf("/fill/%06d", k), "some value"))
			}
		})
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		n.t.Fatal(err)
	}
	n.t.Logf("%d puts in %s", to-from, time.Since(began).Round(time.Millisecond))
}
