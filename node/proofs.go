package node

import (
	"slices"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/must"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
)

// maxProofs bounds the proofs of fault that are remembered; one per anchor is
// enough to bar it.
const maxProofs = 256

// proofs are the faults that this node can prove, one per anchor.
type proofs struct {
	known []votes.Equivocation
	done  map[aweigh.AnchorID]bool // stands in a block that is final or held
}

// restore learns from the trust ledger which faults stand on the chain.
func (p *proofs) restore(s *scope.State) error {
	p.done = make(map[aweigh.AnchorID]bool)
	ledger, err := s.Ledger()
	if err != nil {
		return err
	}
	for st := range ledger.All() {
		if st.Barred {
			p.done[st.Anchor] = true
		}
	}
	return nil
}

func (p *proofs) add(m *Machine, a, b votes.Ballot) {
	e, err := votes.NewEquivocation(a, b)
	if err != nil || len(p.known) >= maxProofs {
		return
	}
	for _, k := range p.known {
		if k.Anchor() == e.Anchor() {
			return
		}
	}
	p.known = append(p.known, e)
	m.note(Faulted{Proof: e})
}

// succeed keeps what can still be proven in the epoch that began.
func (p *proofs) succeed(m *Machine) {
	p.known = slices.DeleteFunc(p.known, func(e votes.Equivocation) bool {
		return e.First.Domain != m.term.epoch.Before
	})
	must.OK(p.restore(m.chain.state), "reading the trust ledger")
}

// fresh are the proofs that no block of this node's chain carries yet.
func (p *proofs) fresh(path []*candidate) (out []votes.Equivocation) {
	carried := make(map[aweigh.AnchorID]bool)
	for _, k := range path {
		for _, e := range k.block.Proofs {
			carried[e.Anchor()] = true
		}
	}
	for _, e := range p.known {
		if !p.done[e.Anchor()] && !carried[e.Anchor()] && len(out) < scope.MaxProofs {
			out = append(out, e)
		}
	}
	return out
}

// applied notes the proofs of a final block.
func (p *proofs) applied(in []votes.Equivocation) {
	for _, e := range in {
		p.done[e.Anchor()] = true
	}
}
