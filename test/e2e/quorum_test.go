package e2e

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/client"
	"github.com/aweigh/aweigh/internal/testshort"
)

// within is a context for one request.
func within(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

func putOf(key, value string) *aweighv1.PutRequest {
	return &aweighv1.PutRequest{Key: []byte(key), Value: []byte(value)}
}

// TestNoQuorumSaysSo: with half of the weight gone nothing is promised, callers
// hear why and what to do, and what they did do happens once.
func TestNoQuorumSaysSo(t *testing.T) {
	testshort.SkipUnlessLong(t)
	t.Parallel()
	n := newNetwork(t, 4, false)
	n.start()
	c := n.dial(0)
	status, err := n.nodes[0].status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	half := fmt.Sprintf("weight %d ", status.TotalWeight/2)
	needed := fmt.Sprintf("%d is needed", max(status.Notarize, status.Finalize))
	before, err := c.Put(within(t, 10*time.Second), putOf("/before", "1"))
	if err != nil {
		t.Fatal(err)
	}
	n.nodes[0].signal(sigPause)
	began := time.Now()
	if out, errs, code := n.command("get", "--api", n.nodes[0].api+","+n.nodes[1].api, "/before"); code != 0 || time.Since(began) > 8*time.Second {
		t.Errorf("beside a node that hangs: exit code %d after %s: %s%s", code, time.Since(began), out, errs)
	}
	n.nodes[0].signal(sigGo)
	n.nodes[2].signal(sigKill)
	n.nodes[3].signal(sigKill)

	t.Run("a write", func(t *testing.T) {
		began := time.Now()
		_, err := c.Put(within(t, 3*time.Second), putOf("/failed", "1"))
		took := time.Since(began)
		t.Logf("after %s: %v", took.Round(time.Millisecond), err)
		var u *client.Undecided
		if !errors.As(err, &u) || !strings.Contains(err.Error(), half) || !strings.Contains(err.Error(), needed) {
			t.Errorf("%v, want an undecided one that says %q and %q", err, half, needed)
		}
		if took > 8*time.Second {
			t.Errorf("it took %s", took)
		}
	})
	t.Run("a write on the command line", func(t *testing.T) {
		began := time.Now()
		_, errs, code := n.command("put", "--api", n.nodes[0].api, "--timeout", "3s", "/command", "1")
		took := time.Since(began)
		t.Logf("exit code %d after %s: %s", code, took.Round(time.Millisecond), errs)
		if code != 5 || took > 8*time.Second || !strings.Contains(errs, needed) || !strings.Contains(errs, "--nonce") {
			t.Error("want exit code 5 within 8 s, and a text with the weight needed and --nonce")
		}
	})
	t.Run("a write whose time is over", func(t *testing.T) {
		put := []string{"put", "--api", n.nodes[0].api, "--timeout", "2s", "--valid-for", "1s", "/over", "1"}
		_, errs, code := n.command(put...)
		nonce := regexp.MustCompile(`--nonce (\S+)`).FindStringSubmatch(errs)
		if code != 5 || nonce == nil {
			t.Fatalf("exit code %d: %s", code, errs)
		}
		_, errs, code = n.command(append(put, "--nonce", nonce[1])...)
		if code != 5 || !strings.Contains(errs, "may still commit") || strings.Contains(errs, "never will be") {
			t.Errorf("repeated when its time is over by all clocks, and not by the newest block: exit code %d: %s", code, errs)
		}
	})
	t.Run("reads", func(t *testing.T) {
		began := time.Now()
		_, err := c.Get(within(t, 3*time.Second), []byte("/before"))
		took := time.Since(began)
		t.Logf("after %s: %v", took.Round(time.Millisecond), err)
		if !errors.Is(err, client.ErrUnread) || !strings.Contains(err.Error(), half+"are reachable") || took > 8*time.Second {
			t.Errorf("a linearizable read: %v after %s", err, took)
		}
		old, err := c.Range(within(t, 3*time.Second), &aweighv1.RangeRequest{Key: []byte("/before"), Serializable: true})
		if err != nil || len(old.Kvs) != 1 || string(old.Kvs[0].Value) != "1" || old.Header.Linearizable {
			t.Errorf("a serializable read: %v, %v", old, err)
		}
	})

	// One write fails now and is repeated later, one goes on waiting.
	again := putOf("/again", "1")
	if _, err := c.Put(within(t, time.Second), again); !errors.Is(err, client.ErrUndecided) {
		t.Fatalf("%v, want an undecided one", err)
	}
	waited := make(chan error, 1)
	go func() {
		_, err := n.dial(1).Put(within(t, 50*time.Second), putOf("/waited", "1"))
		waited <- err
	}()
	until(t, 5*time.Second, "the write waits", func(ctx context.Context) error {
		s, err := n.nodes[1].status(ctx)
		if err == nil && s.Waiting < 2 {
			err = fmt.Errorf("%d wait", s.Waiting)
		}
		return err
	})

	began = time.Now()
	n.nodes[2].start()
	for i := range 2 { // a second time, for the answer out of the record
		resp, err := c.Put(within(t, 30*time.Second), proto.Clone(again).(*aweighv1.PutRequest))
		if err != nil {
			t.Fatalf("repeated %d times: %v", i+1, err)
		}
		if resp.Header.Revision <= before.Header.Revision {
			t.Errorf("revision %d", resp.Header.Revision)
		}
	}
	if err := <-waited; err != nil {
		t.Errorf("the write that waited: %v", err)
	}
	t.Logf("decided %s after the start of a third node", time.Since(began).Round(time.Millisecond))

	n.nodes[3].start()
	state := n.agreed(30 * time.Second)
	all, err := changes(within(t, 30*time.Second), c, state.Header.Revision)
	if err != nil {
		t.Fatal(err)
	}
	count := make(map[string]int)
	for _, x := range all {
		count[x.key]++
	}
	t.Logf("changes: %v", count)
	for _, key := range []string{"/before", "/again", "/waited"} {
		if count[key] != 1 {
			t.Errorf("%s was written %d times, want once", key, count[key])
		}
	}
	for _, key := range []string{"/failed", "/command", "/over"} { // nobody repeated them: either way is right, once
		if count[key] > 1 {
			t.Errorf("%s was written %d times", key, count[key])
		}
	}
	if made := state.Header.Revision - before.Header.Revision + 1; int64(len(all)) != made {
		t.Errorf("%d changes made %d revisions", len(all), made)
	}
}
