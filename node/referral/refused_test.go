package referral

import (
	"errors"
	"testing"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
)

// epochOf is an epoch of anchors of equal weight, called a, b, and so on.
func epochOf(t *testing.T, anchors int) *scope.Epoch {
	t.Helper()
	e := &scope.Epoch{Number: 3}
	var shares []quorum.Share
	for i := range anchors {
		seed := make([]byte, 32)
		seed[0] = byte(i + 1)
		k, err := votes.KeyFromSeed(votes.Ed25519, seed)
		if err != nil {
			t.Fatal(err)
		}
		e.Roster.Anchors = append(e.Roster.Anchors, scope.Anchor{Name: string(rune('a' + i)), Key: k.Public()})
		shares = append(shares, quorum.Share{Anchor: k.Public().ID(), Weight: 1})
	}
	w, err := quorum.NewWeights(shares...)
	if err != nil {
		t.Fatal(err)
	}
	e.Roster.Weights, e.Policy.Rules.Mode = w, quorum.BFT
	return e
}

// TestFewRefusalsDecideNothing: anchors whose state is old, or that lie, may refuse a question. Others are asked until
// so many have refused it that the rest cannot answer it; a write is refused only if all have refused it, as any one
// may have taken it.
func TestFewRefusalsDecideNothing(t *testing.T) {
	for _, c := range []struct {
		name   string
		mode   quorum.Mode
		kind   uint8
		refuse int  // anchors that refuse before the others answer
		denied bool // that is the outcome
		author bool // the other anchors say that the policy does not list the author
	}{
		{"one of a quorum that may crash", quorum.Crash, AskHistory, 1, false, false},
		{"three of four", quorum.Crash, AskHistory, 3, false, false},
		{"all", quorum.Crash, AskHistory, 4, true, false},
		{"as many as may lie, and one", quorum.BFT, AskHistory, 2, false, false},
		{"more than can be spared", quorum.BFT, AskHistory, 3, true, false},
		{"two, of a proof", quorum.BFT, AskProve, 2, false, false},
		{"three, of a write", quorum.BFT, AskSubmit, 3, false, false},
		{"all, of a write", quorum.BFT, AskSubmit, 4, true, false},
		{"one, of a write that the others deny", quorum.BFT, AskSubmit, 1, true, true},
		{"none, of a write that all deny", quorum.BFT, AskSubmit, 0, false, true},
	} {
		e := epochOf(t, 4)
		e.Policy.Rules.Mode = c.mode
		f := &Scope{epoch: e, newest: 100, seen: map[aweigh.AnchorID]Conduct{}, cache: map[aweigh.Hash]cached{}}
		q := f.Inquire(Question{Kind: c.kind, Newest: true}, 1)
		for left := c.refuse; ; left-- {
			x, ok := q.Next()
			if !ok {
				break
			}
			a := Answer{Epoch: 3, Revision: 100, Body: []byte{0x80}}
			if c.author {
				a.Failure = scope.Reason(scope.ErrNoAuthor)
			}
			if left > 0 {
				a = Refused()
			}
			q.Hear(x, 1, a, nil)
		}
		said, err, ended := q.Result()
		switch {
		case !ended:
			t.Errorf("%s: no outcome", c.name)
		case c.author && !errors.Is(err, scope.ErrDenied):
			t.Errorf("%s: %+v, %v", c.name, said, err)
		case errors.Is(err, scope.ErrNoReader) != c.denied:
			t.Errorf("%s: %+v, %v", c.name, said, err)
		case !c.denied && c.kind != AskSubmit && (err != nil || said.Revision != 100):
			t.Errorf("%s: %+v, %v", c.name, said, err)
		}
	}
}
