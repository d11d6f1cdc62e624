package node

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/trust"
	"github.com/aweigh/aweigh/votes"
)

// Standing is what a scope knows of one anchor, and what would become of the anchor if the epoch ended now.
type Standing struct {
	trust.Standing
	Name, Peer string
	Key        votes.PublicKey // zero if this node does not hold the roster that had it
	Word       string          // active, standby, probation, barred, retired or evicted
	Weight     uint64          // in this epoch
	Trend      *int64          // of the score at the epoch's start against the one before; nil if there is none
	Next       Share           // if the epoch ended now
	Why        string          // how Weight was determined; empty if this node does not know
}

// Share is an anchor's share in a roster.
type Share struct {
	Seated bool
	Score  trust.Score
	Weight uint64
}

// Government holds the anchors that decide in a scope, the rules, and what is about to change.
type Government struct {
	Head    scope.Head
	Epoch   *scope.Epoch
	Age     uint64         // blocks of the epoch so far
	Ends    aweigh.Instant // when the clock ends it; 0: it does not
	Due     bool           // the next block ends it
	Anchors []Standing     // in the order of anchors
	Open    []Pending
	Few     FewestToFail
	Void    []scope.Voided // approvers that signed both ways
	Usages  []Usage        // under quotas of the policy's authors, by the names of entries
	Group   scope.GroupNow // zero: all anchors past probation weigh

	Next      scope.Roster // if the epoch ended now
	NextFew   FewestToFail
	Stoppable bool // the weight that may fail could stop the next one (P3)
}

// Usage is what the authors of an entry have.
type Usage struct {
	scope.EntryUsage
	Made int64 // changes that count at its rate at the moment
}

// FewestToFail is scope.FewestToFail.
type FewestToFail = scope.FewestToFail

// Government returns the government as of this node's state. under is a policy that might take effect with the next
// epoch; nil stands for the one that will. Errors about it wrap scope.ErrInvalid.
func (n *Replica) Government(under *scope.Policy) (g Government, err error) {
	v, err := n.Read(context.Background(), false)
	if err != nil {
		return g, err
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	h := machine.History{Reader: v.snapshot, Scope: n.id}
	g.Head = v.Head()
	if g.Epoch, err = v.Epoch(); err != nil {
		return g, err
	}
	e := g.Epoch
	if g.Head.Height > e.Start {
		g.Age = uint64(g.Head.Height - e.Start)
	}
	if g.Ends, err = v.ClockEnds(); err != nil {
		return g, err
	}
	if g.Due, err = v.Due(n.runner.now()); err != nil {
		return g, err
	}
	if g.Open, err = pending(v.State); err != nil {
		return g, err
	}
	if g.Group, err = v.Group(); err != nil {
		return g, err
	}
	if g.Void, err = v.Voided(); err != nil {
		return g, err
	}
	if g.Usages, err = usages(v.State, e, max(n.runner.now(), g.Head.Time)); err != nil {
		return g, err
	}
	if err := g.forecast(v.State, under); err != nil {
		return g, err
	}
	return g, g.standings(*n.genesis, v.State, h)
}

// Outlook is what the scope sees of its topology in its present epoch.
func (n *Replica) Outlook() (o scope.Outlook, e *scope.Epoch, head scope.Head, err error) {
	v, err := n.Read(context.Background(), false)
	if err != nil {
		return o, nil, head, err
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	if e, err = v.Epoch(); err == nil {
		o, err = v.Outlook(max(n.runner.now(), v.Head().Time))
	}
	if p := n.of.parent(n.id); o.Home.Below && p != nil && !p.vacant.Load() {
		if d := delegationTo(p.Delegations(), n.id); d != nil {
			o.Home.Stays = n.keptBy(p.epochs.epoch(), d, e, &o.Home)
		}
	}
	return o, e, v.Head(), err
}

// keptBy is why the scope does not go back to the one above, which is in an epoch, has this delegation to it, and may
// have reasons of its own.
func (n *Replica) keptBy(above *scope.Epoch, d *scope.Delegation, e *scope.Epoch, h *scope.Homeward) string {
	if r := d.Revocation; r != nil && r.Folds() {
		if e.Home != nil {
			return h.Stays
		}
		return fmt.Sprintf("it is ordered to, and closes after %s", r.Time.Add(n.genesis.Notice()).Time().UTC().Format(time.RFC3339))
	}
	if h.Quiet || !d.ByItself && n.genesis.Notice() > 0 {
		if failure := above.TakesBack(d, e); failure != nil {
			return failure.Error()
		}
	}
	return h.Stays
}

// usages are those of a state in an epoch, at an instant.
func usages(s *scope.State, e *scope.Epoch, at aweigh.Instant) (all []Usage, err error) {
	used, err := s.Usages()
	if err != nil {
		return nil, err
	}
	for _, u := range used {
		is := Usage{EntryUsage: u}
		for i := range e.Policy.Authors {
			if a := &e.Policy.Authors[i]; a.Name == u.Name {
				is.Made = u.Made(&a.Quota, at)
			}
		}
		all = append(all, is)
	}
	return all, nil
}

// forecast fills in the next epoch.
func (g *Government) forecast(s *scope.State, under *scope.Policy) (err error) {
	policy := g.Epoch.Policy
	for i := range g.Open {
		if p := &g.Open[i]; p.Carried > 0 && p.Decision.Kind == scope.SetPolicy {
			policy = *p.Decision.Policy
		}
	}
	if under == nil {
		if g.Next, _, err = s.Forecast(); err != nil {
			return err
		}
		g.Stoppable, err = policy.Rules.Check(g.Next.Weights)
	} else {
		policy = *under
		g.Next, g.Stoppable, err = s.ForecastUnder(policy)
	}
	g.Few, g.NextFew = scope.Fewest(g.Epoch.Policy.Rules, g.Epoch.Roster.Weights), scope.Fewest(policy.Rules, g.Next.Weights)
	return err
}

// standings fills in the anchors.
func (g *Government) standings(genesis scope.Genesis, s *scope.State, h machine.History) error {
	e := g.Epoch
	ledger, err := s.Ledger()
	if err != nil {
		return err
	}
	next := g.Next
	before, err := h.TermsBefore(genesis, e)
	if err != nil {
		return err
	}
	why, err := weightReasons(ledger, e, before)
	if err != nil {
		return err
	}
	for st := range ledger.All() {
		x := Standing{Standing: st, Weight: e.Roster.Weights.Of(st.Anchor), Why: why[st.Anchor]}
		if seat, ok := next.Seat(st.Anchor); ok {
			x.Next = Share{true, next.Anchors[seat].Score, next.Weights.Of(st.Anchor)}
		}
		seat, seated := e.Roster.Seat(st.Anchor)
		var who scope.Anchor
		if seated {
			who = e.Roster.Anchors[seat]
			if score, ok := scoreIn(before, st.Anchor); ok {
				d := int64(who.Score) - int64(score)
				x.Trend = &d
			}
		} else if who, err = h.Identity(genesis, st.Anchor); err != nil {
			return err
		}
		x.Name, x.Peer, x.Key = who.Name, who.Peer, who.Key
		if x.Word, err = h.Word(st, seated, e.Number); err != nil {
			return err
		}
		g.Anchors = append(g.Anchors, x)
	}
	return nil
}

// weightReasons returns how the weights of an epoch's anchors were determined, if the ledger is still that of its
// start.
func weightReasons(l trust.Ledger, e *scope.Epoch, before *scope.Terms) (map[aweigh.AnchorID]string, error) {
	var weights quorum.Weights
	switch {
	case before != nil:
		var shares []quorum.Share
		for i, a := range before.Anchors {
			if w := before.Weights[i]; w > 0 {
				shares = append(shares, quorum.Share{Anchor: a.Key.ID(), Weight: w})
			}
		}
		var err error
		if weights, err = quorum.NewWeights(shares...); err != nil {
			return nil, err
		}
	case e.Number > 0:
		return nil, nil
	}
	now, shares, err := l.NextExplained(e.Policy.Trust, e.Number, weights)
	if err != nil || now.Hash() != e.Roster.Weights.Hash() {
		return nil, nil // a proof, or a decision, has changed the ledger meanwhile
	}
	out := make(map[aweigh.AnchorID]string, len(shares))
	for _, s := range shares {
		out[s.Anchor] = s.Why
	}
	return out, nil
}

func scoreIn(t *scope.Terms, a aweigh.AnchorID) (trust.Score, bool) {
	if t != nil {
		for i := range t.Anchors {
			if t.Anchors[i].Key.ID() == a {
				return t.Anchors[i].Score, true
			}
		}
	}
	return 0, false
}

// Explained is a change of trust, with the proof of the fault that caused it if a fault did and this node holds the
// block.
type Explained struct {
	trust.Change
	Fault *scope.Proof
}

// Explain returns what changed an anchor's trust, newest first: at most limit changes, and whether there are more.
// oldest is the height from which on this node knows of changes.
func (n *Replica) Explain(a aweigh.AnchorID, limit int) (all []Explained, more bool, oldest aweigh.Height, head scope.Head, err error) {
	v, err := n.Read(context.Background(), false)
	if err != nil {
		return nil, false, 0, head, err
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	head = v.Head()
	h := machine.History{Reader: v.snapshot, Scope: n.id}
	if oldest, err = h.Mark(machine.KeyOldest(n.id)); err != nil {
		return nil, false, 0, head, err
	}
	err = h.ChangesBack(a, func(c trust.Change) bool {
		if more = len(all) == limit; !more {
			all = append(all, Explained{Change: c})
		}
		return !more
	})
	for i := range all {
		if all[i].Fault, err = h.Fault(all[i].Change); err != nil {
			return nil, false, 0, head, err
		}
	}
	for _, x := range n.genesis.Anchors {
		if x.Key.ID() != a || more {
			continue
		}
		if more = len(all) == limit; !more {
			_, founded := trust.Ledger{}.ApplyExplained(n.genesis.Policy.Trust,
				trust.Evidence{Anchor: a, Kind: trust.Founded, Score: x.Score})
			all = append(all, Explained{Change: founded[0]})
		}
	}
	return all, more, oldest, head, err
}

// HandoversAfter returns the proofs of the epochs that begin above a height, in order: at most most of them, and
// whether there are more.
func (n *Replica) HandoversAfter(at aweigh.Height, most, bytes int) (all [][]byte, more bool, err error) {
	end := kv.PrefixEnd(machine.Record(n.id, 'e'))
	size := 0
	err = n.History().Reader.Scan(machine.KeyHandover(n.id, at+1), end, false, func(_, raw []byte) bool {
		if more = len(all) > 0 && (len(all) == most || size+len(raw) > bytes); !more {
			all, size = append(all, append([]byte(nil), raw...)), size+len(raw)
		}
		return !more
	})
	return all, more, err
}
