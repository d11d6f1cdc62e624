package node

import (
	"context"
	"errors"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/trust"
)

// Standing is what a scope knows of one anchor, and what would become of it if
// the epoch ended now.
type Standing struct {
	trust.Standing
	Name, Peer string
	Word       string // active, probation, barred, retired or evicted
	Weight     uint64 // in this epoch
	Trend      *int64 // of the score at the epoch's start against the one before; nil if there is none
	Next       Share  // if the epoch ended now
	Why        string // how Weight came about; empty if this node cannot tell
}

// Share is an anchor's share in a roster.
type Share struct {
	Seated bool
	Score  trust.Score
	Weight uint64
}

// Government is who decides in a scope, by which rules, and what is about to
// change.
type Government struct {
	Head    scope.Head
	Epoch   *scope.Epoch
	Age     uint64         // blocks of the epoch so far
	Ends    aweigh.Instant // when the clock ends it; 0: it does not
	Due     bool           // the next block ends it
	Anchors []Standing     // in the order of anchors
	Open    []Pending
	Few     Few

	Next      scope.Roster // if the epoch ended now
	NextFew   Few
	Stoppable bool // the weight that may fail could stop the next one (P3)
}

// Few are the smallest numbers of anchors that could do harm, one more than there
// are if all could not.
type Few struct {
	Stop  int // could stop the scope
	Break int // could, lying together, make it finalize two histories
}

// Government is as of the state that this node has. under is a policy that might
// take effect with the next epoch; nil means that which will. Errors about it
// wrap scope.ErrInvalid.
func (n *Part) Government(under *scope.Policy) (g Government, err error) {
	v, err := n.Read(context.Background(), false)
	if err != nil {
		return g, err
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	h := History{Reader: v.snapshot, Scope: n.id}
	g.Head = v.Head()
	if g.Epoch, err = v.Epoch(); err != nil {
		return g, err
	}
	e := g.Epoch
	if g.Head.Height > e.Start {
		g.Age = uint64(g.Head.Height - e.Start)
	}
	if g.Ends, err = v.Deadline(); err != nil {
		return g, err
	}
	if g.Due, err = v.Due(n.runner.now()); err != nil {
		return g, err
	}
	if g.Open, err = pending(v.State); err != nil {
		return g, err
	}
	if err := g.forecast(v.State, under); err != nil {
		return g, err
	}
	return g, g.standings(*n.genesis, v.State, h)
}

// forecast fills in what would follow.
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
	g.Few, g.NextFew = few(g.Epoch.Policy.Rules, g.Epoch.Roster.Weights), few(policy.Rules, g.Next.Weights)
	return err
}

func few(r quorum.Rules, w quorum.Weights) Few {
	total := w.Total()
	most, heads := uint64(0), uint32(0)
	for _, k := range []quorum.Kind{quorum.Notarize, quorum.Finalize, quorum.Nullify} {
		most, heads = max(most, r.For(k).Threshold(total)), max(heads, r.For(k).MinAnchors)
	}
	stop := trust.Fewest(w, total-most+1)
	if heads > 0 {
		stop = min(stop, w.Len()-int(heads)+1)
	}
	n, f, s := r.Notarize.Threshold(total), r.Finalize.Threshold(total), r.Nullify.Threshold(total)
	return Few{stop, trust.Fewest(w, min(2*n, f+s)-total)}
}

// standings fills in the anchors.
func (g *Government) standings(genesis scope.Genesis, s *scope.State, h History) error {
	e := g.Epoch
	ledger, err := s.Ledger()
	if err != nil {
		return err
	}
	next := g.Next
	before, err := h.before(genesis, e)
	if err != nil {
		return err
	}
	why, err := whys(ledger, e, before)
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
		} else if who, err = h.identity(genesis, st.Anchor); err != nil {
			return err
		}
		x.Name, x.Peer = who.Name, who.Peer
		if x.Word, err = h.word(st, seated, e.Number); err != nil {
			return err
		}
		g.Anchors = append(g.Anchors, x)
	}
	return nil
}

// whys says of the anchors how their weights in an epoch came about, as far as
// the ledger is still that of its start.
func whys(l trust.Ledger, e *scope.Epoch, before *scope.Terms) (map[aweigh.AnchorID]string, error) {
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

// before is the terms of the epoch before one; nil if there is none, or this
// node does not hold it.
func (h History) before(g scope.Genesis, e *scope.Epoch) (*scope.Terms, error) {
	switch e.Number {
	case 0:
		return nil, nil
	case 1:
		first, err := g.Epoch()
		if err != nil {
			return nil, err
		}
		t := first.Terms()
		return &t, nil
	}
	var found *scope.Terms
	err := h.handoversBack(func(hand *scope.Handover) bool {
		if hand.Final.Header.Epoch == e.Number-2 {
			found = &hand.Terms
		}
		return hand.Final.Header.Epoch > e.Number-2
	})
	return found, err
}

// handoversBack visits the handovers, the newest first, until visit has enough.
func (h History) handoversBack(visit func(*scope.Handover) (more bool)) error {
	space := record(h.Scope, 'e')
	var bad error
	err := h.Reader.Scan(space, kv.PrefixEnd(space), true, func(_, raw []byte) bool {
		var hand scope.Handover
		if bad = canon.Decode(raw, &hand); bad != nil {
			return false
		}
		return visit(&hand)
	})
	return errors.Join(err, bad)
}

// identity is who an anchor was that has no seat any more: as the last roster
// with it says.
func (h History) identity(g scope.Genesis, id aweigh.AnchorID) (who scope.Anchor, err error) {
	pick := func(anchors []scope.Anchor) bool {
		for _, a := range anchors {
			if a.Key.ID() == id {
				who = a
				return true
			}
		}
		return false
	}
	found := false
	err = h.handoversBack(func(hand *scope.Handover) bool {
		found = pick(hand.Terms.Anchors)
		return !found
	})
	if !found && !pick(g.Anchors) {
		who.Name = id.Short()
	}
	return who, err
}

// word is an anchor's standing in a word.
func (h History) word(st trust.Standing, seated bool, now aweigh.Epoch) (string, error) {
	switch {
	case st.Barred:
		return "barred", nil
	case seated && st.Weighs > now:
		return "probation", nil
	case seated:
		return "active", nil
	}
	word := "left"
	err := h.ChangesBack(st.Anchor, func(c trust.Change) bool {
		switch c.Evidence.Kind {
		case trust.Retired, trust.Evicted:
			word = c.Evidence.Kind.String()
			return false
		}
		return true
	})
	return word, err
}

// ChangesBack visits what moved an anchor's trust, the newest first, until visit
// has enough.
func (h History) ChangesBack(a aweigh.AnchorID, visit func(trust.Change) (more bool)) error {
	space := record(h.Scope, 't', a[:]...)
	var bad error
	err := h.Reader.Scan(space, kv.PrefixEnd(space), true, func(_, raw []byte) bool {
		var c trust.Change
		if bad = canon.Decode(raw, &c); bad != nil {
			return false
		}
		return visit(c)
	})
	return errors.Join(err, bad)
}

// Explained is a change of trust with the proof of fault that caused it, if one
// did and this node holds the block.
type Explained struct {
	trust.Change
	Fault *scope.Proof
}

// Explain lists what moved an anchor's trust, newest first: at most limit
// changes, and whether there are more. oldest is the block from which on this
// node knows of them.
func (n *Part) Explain(a aweigh.AnchorID, limit int) (all []Explained, more bool, oldest aweigh.Height, head scope.Head, err error) {
	v, err := n.Read(context.Background(), false)
	if err != nil {
		return nil, false, 0, head, err
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	head = v.Head()
	h := History{Reader: v.snapshot, Scope: n.id}
	if oldest, err = h.mark(keyOldest(n.id)); err != nil {
		return nil, false, 0, head, err
	}
	err = h.ChangesBack(a, func(c trust.Change) bool {
		if more = len(all) == limit; !more {
			all = append(all, Explained{Change: c})
		}
		return !more
	})
	for i := range all {
		if all[i].Fault, err = h.fault(all[i].Change); err != nil {
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

// fault is the proof that a change of trust rests on.
func (h History) fault(c trust.Change) (*scope.Proof, error) {
	if c.Evidence.Kind != trust.Equivocated {
		return nil, nil
	}
	b, err := h.Block(c.Evidence.Height)
	if errors.Is(err, ErrNoBlock) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for i := range b.Proofs {
		if scope.ProofHash(&b.Proofs[i]) == c.Evidence.Proof {
			return &b.Proofs[i], nil
		}
	}
	return nil, nil
}

// HandoversAfter are the proofs of the epochs that begin above a height, in
// order: at most as many as asked for, and whether there are more.
func (n *Part) HandoversAfter(at aweigh.Height, most, bytes int) (all [][]byte, more bool, err error) {
	end := kv.PrefixEnd(record(n.id, 'e'))
	size := 0
	err = n.cfg.Store.Scan(keyHandover(n.id, at+1), end, false, func(_, raw []byte) bool {
		if more = len(all) > 0 && (len(all) == most || size+len(raw) > bytes); !more {
			all, size = append(all, append([]byte(nil), raw...)), size+len(raw)
		}
		return !more
	})
	return all, more, err
}
