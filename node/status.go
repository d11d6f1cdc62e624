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
	s := Status{
		Network: m.network(), Scope: m.id, Self: m.self,
		Epoch: m.term.epoch.Number, Began: m.term.epoch.Start, EpochBlocks: m.term.epoch.Policy.EpochBlocks, View: m.engine.View(), Leader: m.engine.Leader(m.engine.View()),
		Head: m.chain.state.Head(), Rules: m.keyring.Rules(), Roster: m.roster,
		Known: max(m.known, m.chain.state.Height()),
		Pool:  m.pool.mutations, PoolSize: m.pool.bytes, Waiting: m.pool.waiting,
		Signed: m.signed,
		Lost:   m.guard != nil && m.guard.Lost(), Listening: m.guard != nil && !m.listen.over, Behind: m.sync.at != 0,
		Far:    m.sync.far(m),
		Faults: slices.Clone(m.proofs.known),
		Heard:  make(map[aweigh.AnchorID]aweigh.View), Silent: maps.Clone(m.silent),
	}
	if s.Behind {
		s.Told = m.sync.told
	}
	if s.Listening && !s.Lost {
		s.Unheard = m.listen.unheard(m.now)
	}
	if open, err := m.chain.state.Agenda(); err == nil {
		s.Agenda = len(open)
	}
	for share := range m.roster.Weights.All() {
		s.Heard[share.Anchor] = m.engine.Heard(share.Anchor)
	}
	return s
}
