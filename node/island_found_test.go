package node

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/testshort"
)

// TestIslandsAreComputedOnce: an anchor that asks again and again whether another one would be a member of an island
// pays for one computation, and for another one if it asks for another island.
func TestIslandsAreComputedOnce(t *testing.T) {
	testshort.Skip(t)
	t.Parallel()
	p := shipPolicy()
	p.Partitions[0].Num, p.Partitions[0].Den = 3, 4 // what is left founds none
	c, cut := halves(t, 4, 2, p)
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	if _, err := c.nodes[0].Txn(ctx, putTxn("/ship/log", "before"), Once{}); err != nil {
		t.Fatal(err)
	}
	ids := []aweigh.AnchorID{c.nodes[0].root.Status().Self, c.nodes[1].root.Status().Self}
	founder, other := c.nodes[0], c.nodes[1]
	if least(ids) != ids[0] {
		founder, other = other, founder
	}
	slices.SortFunc(ids, func(a, b aweigh.AnchorID) int { return bytes.Compare(a[:], b[:]) })
	cut(true)
	eventually(t, ctx, "it is apart", func() error {
		if other.apart(other.root) < 2*time.Second {
			return errors.New("not yet")
		}
		return nil
	})
	from := founder.root.called.of(founder.host.ID())
	reads := func() float64 { return other.root.budgets.Given(from).Tokens() }
	ask := islandAsk{Prefix: []byte("/ship/"), Members: ids, Block: other.root.LastHead().Block}
	before := reads()
	for range 100 {
		if _, err := other.root.joinIsland(ctx, from, ask); !errors.Is(err, ErrNoIsland) { // it would be too light
			t.Fatal(err)
		}
	}
	if spent := before - reads(); spent > 1.1*islandReads {
		t.Errorf("a hundred questions cost %.0f bytes", spent)
	}
	before = reads()
	ask.Members = append(ids, ids[1])
	if _, err := other.root.joinIsland(ctx, from, ask); !errors.Is(err, ErrNoIsland) {
		t.Fatal(err)
	}
	if spent := before - reads(); spent < islandReads/2 {
		t.Errorf("another question costs %.0f bytes", spent)
	}
	before, ask.Block = reads(), aweigh.Hash{}
	if _, err := other.root.joinIsland(ctx, from, ask); !errors.Is(err, ErrNoIsland) {
		t.Fatal(err)
	}
	if spent := before - reads(); spent > 0 {
		t.Errorf("a question about another block costs %.0f bytes", spent)
	}
}
