package node

import (
	"testing"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
)

// poller is four anchors and the board of one of them.
type poller struct {
	t       *testing.T
	keys    []votes.PrivateKey
	peers   []Peer
	network *Network
	board   *board
}

func newPoller(t *testing.T) *poller {
	p := &poller{t: t}
	var founders []Founder
	for i := range byte(4) {
		seed, author := aweigh.Sum([]byte{i}), aweigh.Sum([]byte{i, 1})
		key, err := votes.KeyFromSeed(votes.Ed25519, seed[:])
		if err != nil {
			t.Fatal(err)
		}
		identity, err := votes.KeyFromSeed(votes.Ed25519, author[:])
		if err != nil {
			t.Fatal(err)
		}
		peer, err := PeerOf(identity)
		if err != nil {
			t.Fatal(err)
		}
		p.keys, p.peers = append(p.keys, key), append(p.peers, peer)
		founders = append(founders, Founder{Key: key.Public(), Peer: peer})
	}
	g, err := NewGenesis("board", 1, scope.DefaultPolicy(quorum.BFT), founders...)
	if err != nil {
		t.Fatal(err)
	}
	if p.network, err = NewNetwork(g, nil); err != nil {
		t.Fatal(err)
	}
	p.board = newBoard(p.network.anchors, p.network.keyring)
	return p
}

func (p *poller) ballot(i int, s quorum.Subject) votes.Ballot {
	b := votes.Ballot{Format: scope.Format, Domain: p.network.keyring.Domain(), Subject: s, Anchor: p.keys[i].Public().ID()}
	b.Signature = p.keys[i].Sign(votes.ContextBallot, b.SigningBytes())
	return b
}

func (p *poller) spare(from, signer int, s quorum.Subject, want bool, why string) {
	p.t.Helper()
	if got := p.board.spare(p.peers[from], p.ballot(signer, s)); got != want {
		p.t.Errorf("%s: spare is %v", why, got)
	}
}

func TestVotesBeyondAQuorumAreNotVerified(t *testing.T) {
	p := newPoller(t)
	a := quorum.Subject{Kind: quorum.Finalize, View: 7, Block: aweigh.Hash{1}}
	other, nullify := a, quorum.Subject{Kind: quorum.Nullify, View: 7}
	other.Block = aweigh.Hash{2}
	p.spare(1, 1, a, false, "the first")
	p.board.count(p.ballot(0, a).Vote()) // its own
	p.board.count(p.ballot(1, a).Vote())
	p.spare(1, 1, a, true, "one that was counted")
	p.spare(2, 2, a, false, "the one that makes the quorum")
	p.board.count(p.ballot(1, a).Vote())
	p.spare(2, 2, a, false, "after one was counted twice")
	p.board.count(p.ballot(2, a).Vote())
	p.spare(1, 3, a, false, "one that somebody else brings")
	p.spare(3, 3, other, false, "one for another block")
	p.spare(1, 1, nullify, false, "one that contradicts a vote that was counted")
	foreign := p.ballot(3, a)
	foreign.Domain.Epoch++
	if p.board.spare(p.peers[3], foreign) {
		t.Error("one of another epoch")
	}
	p.spare(3, 3, a, true, "one beyond the quorum")
}

// TestSpareBallotsStillProveTheFault: who contradicts a vote that nobody verified
// is found out.
func TestSpareBallotsStillProveTheFault(t *testing.T) {
	p := newPoller(t)
	a := quorum.Subject{Kind: quorum.Notarize, View: 7, Block: aweigh.Hash{1}}
	b := a
	b.Block = aweigh.Hash{2}
	for i := range 3 {
		p.board.count(p.ballot(i, a).Vote())
	}
	p.spare(3, 3, a, true, "one beyond the quorum")
	p.board.count(p.ballot(2, b).Vote()) // so that the other block is known, too
	contrary := p.board.count(p.ballot(3, b).Vote())
	if len(contrary) != 1 || contrary[0].Subject != a || contrary[0].Anchor != p.keys[3].Public().ID() {
		t.Fatalf("%d contrary ballots", len(contrary))
	}
	if _, err := p.network.checker.ballot(contrary[0]); err != nil {
		t.Fatal(err)
	}
}

func TestBoardsAreBounded(t *testing.T) {
	p := newPoller(t)
	for v := range aweigh.View(1000) {
		for i := range byte(100) {
			p.board.count(quorum.Vote{
				Subject:   quorum.Subject{Kind: quorum.Notarize, View: v + 1, Block: aweigh.Hash{i}},
				Signature: quorum.Signature{Anchor: p.keys[1].Public().ID()},
			})
		}
	}
	if n := len(p.board.views); n != boardViews {
		t.Errorf("%d views", n)
	}
	if n := len(p.board.views[1000].subjects); n > 16 {
		t.Errorf("%d subjects of one liar in a view", n)
	}
}
