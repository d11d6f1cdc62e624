package machine

import (
	"testing"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
)

// answer makes an anchor's answer to a read of another one.
func (n *drill) answer(from, to int, unfinalized aweigh.View) {
	m := n.m[from]
	a, ok := m.pledge()
	if !ok {
		n.t.Fatal("no answer to a read")
	}
	a.Round, a.Unfinalized = n.m[to].reads.round, unfinalized
	n.step(to, Arrived{From: n.peers[from], Message: a})
}

func (n *drill) served(i int) bool {
	for _, r := range n.reply[i] {
		if r.Read == 7 && r.Refused == nil {
			return true
		}
	}
	return false
}

// TestALyingAnchorHoldsUpNoRead: in mode bft an answer's certificate says all; whatever
// view a liar calls unfinalized, reads do not wait for it.
func TestALyingAnchorHoldsUpNoRead(t *testing.T) {
	n := newDrill(t, "read", 4, scope.OpenPolicy(quorum.BFT))
	who := []int{0, 1, 2, 3}
	n.meet(who)
	n.all(who, 4)
	n.step(0, Read{ID: 7})
	n.answer(3, 0, 1<<40)
	n.answer(1, 0, 0)
	if !n.served(0) {
		t.Error("a read waits for a view that a liar made up")
	}
}

// TestReadsAskAgain: the view for which a read waits may have ended without a block where
// the scope rests, and nobody will tell.
func TestReadsAskAgain(t *testing.T) {
	n, reader, a, b, c := newOneRound(t)
	n.step(reader, Read{ID: 7})
	n.answer(a, reader, 1)
	n.answer(b, reader, 1)
	n.answer(c, reader, 1)
	if n.served(reader) {
		t.Fatal("a read did not wait for an unfinalized view")
	}
	n.now = n.now.Add(time.Second)
	n.step(reader)
	n.all([]int{0, 1, 2, 3}, 2)
	if !n.served(reader) {
		t.Error("a read waits for ever, though no view is unfinalized any more")
	}
}
