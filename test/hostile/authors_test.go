package hostile

import (
	"errors"
	"testing"
	"time"

	"github.com/aweigh/aweigh/internal/devnet"
	"github.com/aweigh/aweigh/internal/refusal"
	"github.com/aweigh/aweigh/internal/testwait"
	"github.com/aweigh/aweigh/scope"
)

// TestUnlistedAuthorsWriteNothing: in a network with the default policy, bundles that unlisted authors sign are refused
// by every anchor and reach no block, sent as frames or handed in at a node. Their sender is not blamed for the first
// ones: it may know another policy.
func TestUnlistedAuthorsWriteNothing(t *testing.T) {
	t.Parallel()
	x := newNetworkOf(t, 4, devnet.Make)
	refused := func() (sum uint64) {
		for i := range x.daemons {
			sum += x.node(i).Root().Counts().Refused[refusal.Denied]
		}
		return sum
	}
	for i := range 4 {
		p, to := x.attacker(t, i)
		s, err := p.Open(t.Context(), to, "frames")
		if err != nil {
			t.Fatal(err)
		}
		unlisted := x.unlisted(t)
		if err := Write(s, unlisted.sign(t, unlisted.mutation(put("/stolen", "v"))), 5*time.Second); err != nil {
			t.Fatal(err)
		}
	}
	testwait.Until(t, "each anchor refuses the bundle that it got", func() bool { return refused() >= 4 })
	unlisted := x.unlisted(t)
	b, err := scope.Sign(unlisted.key, x.Genesis.Policy.Limits, unlisted.mutation(put("/stolen", "v")))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := x.node(1).Submit(t.Context(), b.Raw()); !errors.Is(err, scope.ErrNoAuthor) {
		t.Errorf("a node that is handed an unlisted author's bundle: %v", err)
	}
	x.commits(t)
	for i := range x.daemons {
		v, err := x.node(i).Root().Read(t.Context(), true)
		if err != nil {
			t.Fatal(err)
		}
		found, err := v.Range([]byte("/stolen"), nil, scope.Range{})
		if err = errors.Join(err, v.Close()); err != nil || len(found.Kvs) > 0 {
			t.Errorf("node %d holds what an unlisted author wrote: %v, %v", i, found.Kvs, err)
		}
	}
}
