package machine

import (
	"slices"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/must"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
)

// maxProofs bounds the proofs of fault that are kept. One proof per anchor is enough to bar it.
const maxProofs = 256

// proofs holds the faults that this node can prove, one per anchor.
type proofs struct {
	known []votes.Equivocation
	done  map[aweigh.AnchorID]bool // anchors whose fault is in a final block; nil: to be read from the ledger
}

// stands reports whether the chain has recorded a fault of an anchor, according to the trust ledger of s, the final
// state.
func (p *proofs) stands(s *scope.State, a aweigh.AnchorID) bool {
	if p.done == nil {
		p.done = make(map[aweigh.AnchorID]bool)
		ledger, err := s.Ledger()
		must.OK(err, "reading the trust ledger")
		for st := range ledger.All() {
			if st.Barred {
				p.done[st.Anchor] = true
			}
		}
	}
	return p.done[a]
}

func (p *proofs) add(m *Machine, a, b votes.Ballot) {
	e, err := votes.NewEquivocation(a, b)
	if err != nil || len(p.known) >= m.cfg.Bounds.Proofs {
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

// succeed keeps the faults that can still be proven in the epoch that began.
func (p *proofs) succeed(m *Machine) {
	p.known = slices.DeleteFunc(p.known, func(e votes.Equivocation) bool {
		return e.First.Domain != m.term.Epoch.Before
	})
	p.done = nil
}

// fresh returns the proofs that neither the final state s nor a block of path, which stands on top of it, has
// recorded.
func (p *proofs) fresh(s *scope.State, path []*candidate) (out []votes.Equivocation) {
	if len(p.known) == 0 {
		return nil
	}
	carried := make(map[aweigh.AnchorID]bool)
	for _, k := range path {
		for _, e := range k.block.Proofs {
			carried[e.Anchor()] = true
		}
	}
	for _, e := range p.known {
		if !p.stands(s, e.Anchor()) && !carried[e.Anchor()] && len(out) < scope.MaxProofs {
			out = append(out, e)
		}
	}
	return out
}

// applied notes the proofs of a final block.
func (p *proofs) applied(in []votes.Equivocation) {
	if len(in) > 0 {
		p.done = nil
	}
}
