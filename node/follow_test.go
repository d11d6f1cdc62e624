package node

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
)

// TestFollowersHearOfEachWrite: a node that holds a scope and anchors it not is told at once of what it had decided
// there, though it asks for each block: it took two seconds each eighth time, when the anchor's budget for it was
// spent.
func TestFollowersHearOfEachWrite(t *testing.T) {
	testshort.Skip(t)
	t.Parallel()
	_, c := newHolders(t, func(_ int, cfg *Config) { cfg.idleAfter = 0 })
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	if _, err := c.nodes[0].Txn(ctx, putTxn("/b/1", "first"), Once{}); err != nil {
		t.Fatal(err)
	}
	c.delegate(ctx, "", "/b/", quorum.Crash, 1)
	slow := 0
	for i := range 100 {
		began := time.Now()
		if r, err := c.nodes[0].Txn(ctx, putTxn("/b/1", fmt.Sprint(i)), Once{}); err != nil || r.Code != scope.Applied {
			t.Fatal(r, err)
		}
		if time.Since(began) > 1500*time.Millisecond {
			slow++
		}
	}
	if slow > 2 { // a machine may be busy
		t.Errorf("%d of 100 writes took longer than 1.5 s", slow)
	}
}

// TestOnlyFollowedScopesAreToldOften: a node knows which of its scopes somebody follows who is no anchor of it.
func TestOnlyFollowedScopesAreToldOften(t *testing.T) {
	testshort.Skip(t)
	_, c := newHolders(t, func(_ int, cfg *Config) { cfg.idleAfter = 0 })
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	c.delegate(ctx, "", "/b/", quorum.Crash, 1) // the others hold it, and are anchors of the root scope alone
	below := c.nodes[1].Replicas()[slices.IndexFunc(c.nodes[1].Replicas(), func(p *Replica) bool { return string(p.prefix) == "/b/" })]
	for i := 0; c.nodes[1].root.followed.Load() || !below.followed.Load(); i++ {
		for _, key := range []string{"/a", "/b/1"} {
			if _, err := c.nodes[1].Txn(ctx, putTxn(key, fmt.Sprint(i)), Once{}); err != nil {
				t.Fatalf("%v; the root scope is followed: %v, /b/: %v", err, c.nodes[1].root.followed.Load(), below.followed.Load())
			}
		}
	}
}
