package node

import (
	"maps"
	"slices"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
)

// Status is what a Machine can say of itself at once.
type Status struct {
	Network     aweigh.NetworkID
	Scope       aweigh.ScopeID
	Self        aweigh.AnchorID // zero for an observer
	Epoch       aweigh.Epoch
	EpochBlocks uint64        // after which the epoch ends
	Began       aweigh.Height // of the block that the epoch begins with
	Agenda      int           // decisions that are open, or carried and not yet in effect
	View        aweigh.View
	Leader      aweigh.AnchorID
	Head        scope.Head
	Rules       quorum.Rules
	Roster      scope.Roster
	Heard       map[aweigh.AnchorID]aweigh.View // the last view in which each anchor was heard of
	Known       aweigh.Height                   // the highest block proven to be final, here or not
	Pool        int                             // mutations waiting
	PoolSize    int                             // their bytes
	Waiting     int                             // bundles in no open proposal
	Signed      [quorum.Finalize + 1]uint64     // ballots since the start, by kind
	Silent      map[aweigh.AnchorID]bool        // anchors whose nodes said that they sign nothing
	Lost        bool                            // P9: signs nothing
	Listening   bool                            // P9: signs nothing yet, because it has not heard of a quorum since its start
	Unheard     time.Duration                   // for how long others were asked in vain, while it listens and is to sign
	Behind      bool                            // is fetching final blocks
	Told        aweigh.Height                   // that an anchor said it has, unproven, while this node fetches
	Far         bool                            // lacks so many that it waits for a snapshot
	Faults      []votes.Equivocation
}

// Status is a copy of what the machine knows of itself.
func (m *Machine) Status() Status {
	s := m.stand()
	return s.status()
}

// stand is what a Status is made of: of most it names where it stands, so that it is
// soon made, and held, in every scope.
type stand struct {
	term             *term
	state            *scope.State // of which nothing is read but its head
	self             aweigh.AnchorID
	view             aweigh.View
	heard            []aweigh.View // by seat
	silent           map[aweigh.AnchorID]bool
	agenda           int
	known, told      aweigh.Height
	pool, size, wait int
	signed           [quorum.Finalize + 1]uint64
	unheard          time.Duration
	faults           []votes.Equivocation
	lost, listening  bool
	behind, far      bool
}

func (m *Machine) stand() stand {
	s := stand{
		term: m.term, state: m.chain.state, self: m.self, view: m.engine.View(),
		heard: make([]aweigh.View, m.roster.Weights.Len()),
		known: max(m.known, m.chain.state.Height()),
		pool:  m.pool.mutations, size: m.pool.bytes, wait: m.pool.waiting,
		signed: m.signed,
		lost:   m.guard != nil && m.guard.Lost(), listening: m.guard != nil && !m.listen.over, behind: m.sync.at != 0,
		far:    m.sync.far(m),
		faults: slices.Clone(m.proofs.known),
	}
	if len(m.silent) > 0 {
		s.silent = maps.Clone(m.silent)
	}
	if s.behind {
		s.told = m.sync.told
	}
	if s.listening && !s.lost {
		s.unheard = m.listen.unheard(m.now)
	}
	if open, err := m.chain.state.Agenda(); err == nil {
		s.agenda = len(open)
	}
	for seat := range s.heard {
		s.heard[seat] = m.engine.Heard(m.roster.Weights.At(seat).Anchor)
	}
	return s
}

func (s *stand) status() Status {
	e, head := s.term.epoch, s.state.Head()
	status := Status{
		Network: e.Network, Scope: e.Scope, Self: s.self,
		Epoch: e.Number, Began: e.Start, EpochBlocks: e.Policy.EpochBlocks,
		View: s.view, Leader: quorum.Leader(e.Leaders(), e.Seed(), s.view),
		Head: head, Rules: s.term.keyring.Rules(), Roster: e.Roster,
		Known: s.known, Told: s.told,
		Pool: s.pool, PoolSize: s.size, Waiting: s.wait,
		Signed: s.signed, Agenda: s.agenda,
		Lost: s.lost, Listening: s.listening, Unheard: s.unheard, Behind: s.behind, Far: s.far,
		Faults: s.faults, Silent: s.silent,
		Heard: make(map[aweigh.AnchorID]aweigh.View, len(s.heard)),
	}
	for seat, view := range s.heard {
		status.Heard[e.Roster.Weights.At(seat).Anchor] = view
	}
	return status
}
