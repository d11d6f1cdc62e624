package machine

import (
	"maps"
	"slices"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
)

// Status is what a Machine reports of itself.
type Status struct {
	Network     aweigh.NetworkID
	Scope       aweigh.ScopeID
	Self        aweigh.AnchorID // zero for an observer
	Epoch       aweigh.Epoch
	EpochBlocks uint64        // number of blocks after which the epoch ends
	Began       aweigh.Height // height of the block that the epoch begins with
	Agenda      int           // decisions that are open, or carried and not yet in effect
	View        aweigh.View
	Leader      aweigh.AnchorID
	Head        scope.Head
	Rules       quorum.Rules
	Roster      scope.Roster
	Heard       map[aweigh.AnchorID]aweigh.View // the last view in which this node heard each anchor
	Known       aweigh.Height                   // the highest block proven to be final, here or not
	Pool        int                             // waiting mutations
	PoolSize    int                             // their size in bytes
	Waiting     int                             // bundles in no open proposal
	Signed      [quorum.Finalize + 1]uint64     // ballots since the start, by kind
	Silent      map[aweigh.AnchorID]bool        // anchors whose nodes said that they sign nothing
	Lost        bool                            // P9: signs nothing
	Listening   bool                            // P9: signs nothing yet: it has not heard a quorum since its start
	Unheard     time.Duration                   // how long others were asked in vain, if it listens and is to sign
	Behind      bool                            // it is fetching final blocks
	Told        aweigh.Height                   // the height that an anchor claims, unproven, while this node fetches
	Far         bool                            // it lacks so many blocks that it waits for a snapshot
	Faults      []votes.Equivocation
}

// Status returns a copy of what the machine knows of itself.
func (m *Machine) Status() Status {
	s := m.StatusSource()
	return s.Status()
}

// Aged reports whether the machine's state has changed since s was taken.
func (m *Machine) Aged(s *StatusSource) bool { return s.State != m.chain.state }

// StatusSource is what a Status is made from. It mostly refers to the data instead of copying it, so that it is cheap
// to make and to hold for every scope.
type StatusSource struct {
	EpochView        *EpochView
	State            *scope.State // only its head is read
	Self             aweigh.AnchorID
	View             aweigh.View
	heard            []aweigh.View // by seat
	silent           map[aweigh.AnchorID]bool
	agenda           int
	Known, told      aweigh.Height
	pool, size, wait int
	signed           [quorum.Finalize + 1]uint64
	unheard          time.Duration
	faults           []votes.Equivocation
	lost, listening  bool
	behind, Far      bool
}

func (m *Machine) StatusSource() StatusSource {
	s := StatusSource{
		EpochView: m.term, State: m.chain.state, Self: m.self, View: m.engine.View(),
		heard: make([]aweigh.View, m.roster.Weights.Len()),
		Known: max(m.known, m.chain.state.Height()),
		pool:  m.pool.mutations, size: m.pool.bytes, wait: m.pool.waiting,
		signed: m.signed,
		lost:   m.guard != nil && m.guard.Lost(), listening: m.guard != nil && !m.listen.over, behind: m.sync.at != 0,
		Far:    m.sync.far(m),
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

func (s *StatusSource) Status() Status {
	e, head := s.EpochView.Epoch, s.State.Head()
	status := Status{
		Network: e.Network, Scope: e.Scope, Self: s.Self,
		Epoch: e.Number, Began: e.Start, EpochBlocks: e.Policy.EpochBlocks,
		View: s.View, Leader: quorum.Leader(e.Leaders(), e.Seed(), s.View),
		Head: head, Rules: s.EpochView.keyring.Rules(), Roster: e.Roster,
		Known: s.Known, Told: s.told,
		Pool: s.pool, PoolSize: s.size, Waiting: s.wait,
		Signed: s.signed, Agenda: s.agenda,
		Lost: s.lost, Listening: s.listening, Unheard: s.unheard, Behind: s.behind, Far: s.Far,
		Faults: s.faults, Silent: s.silent,
		Heard: make(map[aweigh.AnchorID]aweigh.View, len(s.heard)),
	}
	for seat, view := range s.heard {
		status.Heard[e.Roster.Weights.At(seat).Anchor] = view
	}
	return status
}
