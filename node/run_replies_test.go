package node

import (
	"context"
	"testing"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/node/machine"
)

// TestRepliesOnABundleReachItsWaiters: a reply that names a bundle is for those that wait for the mutation in it, one
// that names none is for all.
func TestRepliesOnABundleReachItsWaiters(t *testing.T) {
	id, small, large := aweigh.Sum([]byte("mutation")), aweigh.Sum([]byte("small")), aweigh.Sum([]byte("large"))
	r := newReplies()
	one, other := make(chan machine.Reply, 1), make(chan machine.Reply, 1)
	r.expect(context.Background(), small, id, one)
	r.expect(context.Background(), large, id, other)
	r.deliver(machine.Reply{Mutation: id, Bundle: small})
	if len(one) != 1 || len(other) != 0 {
		t.Errorf("a reply on a bundle: %d and %d hear of it", len(one), len(other))
	}
	r.deliver(machine.Reply{Mutation: id})
	if len(one) != 1 || len(other) != 1 {
		t.Errorf("a reply on the mutation: %d and %d hear of it", len(one), len(other))
	}
}
