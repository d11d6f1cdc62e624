package node

import (
	"slices"
	"sync"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/votes"
)

// board counts the verified votes of recent views, so that nothing is verified
// that could not change a decision: a vote that was counted already, or one for
// what a quorum, this anchor included, has said. To verify a signature is the
// largest single cost of a view.
//
// Only what an anchor says over its own connection is passed over: it is known to
// be its word, and it is kept. Should its signer be heard to contradict it, both
// are verified, for the proof (P36).
type board struct {
	anchors map[Peer]aweigh.AnchorID
	keyring *votes.Keyring

	mu    sync.Mutex
	views map[aweigh.View]*polls
}

// polls are the votes of one view.
type polls struct {
	subjects []poll
	spares   []votes.Ballot // not verified
}

type poll struct {
	subject quorum.Subject
	votes   quorum.Tally
}

// boardViews bounds the views of a board; the lowest is forgotten first.
const boardViews = 2 * quorum.Ahead

func newBoard(anchors map[Peer]aweigh.AnchorID, k *votes.Keyring) *board {
	return &board{anchors: anchors, keyring: k, views: make(map[aweigh.View]*polls)}
}

// spare reports whether a ballot from a peer need not be verified.
func (b *board) spare(from Peer, v votes.Ballot) bool {
	if b.anchors[from] != v.Anchor || v.Domain != b.keyring.Domain() || !v.Subject.Valid() {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.views[v.Subject.View]
	if p == nil {
		return false
	}
	enough := false
	for i := range p.subjects {
		x := &p.subjects[i]
		switch {
		case x.subject == v.Subject && x.votes.Has(v.Anchor):
			return true
		case x.subject == v.Subject:
			enough = x.votes.Meets(b.keyring.Rules().For(v.Subject.Kind), b.keyring.Weights())
		case x.subject.Conflicts(v.Subject) && x.votes.Has(v.Anchor):
			return false
		}
	}
	if enough && len(p.spares) < 4*len(b.anchors) {
		p.spares = append(p.spares, v)
		return true
	}
	return false
}

// count counts a verified vote, and returns the spare ballots of its signer that
// contradict it.
func (b *board) count(v quorum.Vote) (contrary []votes.Ballot) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.views[v.View]
	if p == nil {
		p = &polls{}
		b.views[v.View] = p
		b.prune()
	}
	i := slices.IndexFunc(p.subjects, func(x poll) bool { return x.subject == v.Subject })
	if i < 0 {
		if i = len(p.subjects); i >= 4*len(b.anchors) { // a liar says many things
			return nil
		}
		p.subjects = append(p.subjects, poll{subject: v.Subject})
	}
	p.subjects[i].votes.Add(b.keyring.Weights(), v.Anchor)
	for _, s := range p.spares {
		if s.Anchor == v.Anchor && s.Subject.Conflicts(v.Subject) {
			contrary = append(contrary, s)
		}
	}
	return contrary
}

func (b *board) prune() {
	for len(b.views) > boardViews {
		lowest := aweigh.View(0)
		for v := range b.views { // order-free: the least
			if lowest == 0 || v < lowest {
				lowest = v
			}
		}
		delete(b.views, lowest)
	}
}

// spare reports whether a frame is a ballot that need not be verified.
func (n *Node) spare(from Peer, f []byte) bool {
	if len(f) == 0 || f[0] != tagBallot {
		return false
	}
	b, err := votes.DecodeBallot(f[1:])
	return err == nil && n.board.spare(from, b)
}

// counted counts what a verified message says. The machine must have it by then.
func (n *Node) counted(from Peer, msg Message) {
	var vote quorum.Vote
	switch msg := msg.(type) {
	case ballotIn:
		vote = msg.ballot.Vote()
	case proposalIn:
		vote = msg.ballot.Vote()
	default:
		return
	}
	if vote.View > n.runner.status.Load().View+quorum.Ahead {
		return // nor does the machine
	}
	for _, s := range n.board.count(vote) {
		if in, err := n.checker.ballot(s); err == nil {
			n.intake.put(from, Arrived{From: from, Message: in}, votes.MaxBallot)
		}
	}
}

// said counts what this node's own machine says. All peers get the same frame.
func (n *Node) said(f []byte) {
	if len(f) < 2 || f[0] != tagBallot && f[0] != tagProposal || &f[0] == n.lastSaid {
		return
	}
	n.lastSaid = &f[0]
	switch c, _ := Parse(f); c := c.(type) {
	case votes.Ballot:
		n.board.count(c.Vote())
	case Proposal:
		h := c.Header
		n.board.count(quorum.Vote{
			Subject:   quorum.Subject{Kind: quorum.Notarize, View: h.View, Block: h.Hash()},
			Signature: quorum.Signature{Anchor: h.Proposer, Bytes: c.Signature},
		})
	}
}
