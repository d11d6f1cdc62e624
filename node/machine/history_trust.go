package machine

import (
	"errors"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/trust"
)

// TermsBefore returns the terms of the epoch before e. It returns nil if there is none, or if this node does not hold
// it.
func (h History) TermsBefore(g scope.Genesis, e *scope.Epoch) (*scope.Terms, error) {
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

// TermsAt returns the terms of the epoch of the block at a height, and the epoch's number, as far as this node has the
// handovers: by the newest one below the block, or without one by the genesis.
func (h History) TermsAt(g scope.Genesis, at aweigh.Height) (t scope.Terms, number aweigh.Epoch, err error) {
	found := false
	var bad error
	err = h.Reader.Scan(Record(h.Scope, 'e'), KeyHandover(h.Scope, at), true, func(_, raw []byte) bool {
		var hand scope.Handover
		if bad = canon.Decode(raw, &hand); bad == nil {
			t, number, found = hand.Terms, hand.Final.Header.Epoch+1, true
		}
		return false
	})
	if err = errors.Join(err, bad); err != nil || found {
		return t, number, err
	}
	first, err := g.Epoch()
	if err != nil {
		return t, 0, err
	}
	return first.Terms(), first.Number, nil
}

// handoversBack visits the handovers, newest first, until visit returns false.
func (h History) handoversBack(visit func(*scope.Handover) (more bool)) error {
	space := Record(h.Scope, 'e')
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

// Identity returns the entry of an anchor in the newest roster that an epoch ended with and that has the anchor; if
// there is none, the entry in the genesis. For an anchor in neither, only Name is set, to a short form of its ID.
func (h History) Identity(g scope.Genesis, id aweigh.AnchorID) (who scope.Anchor, err error) {
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

// Word returns the standing of an anchor in one word: barred, probation, standby, active or left, or for a former
// anchor retired or evicted.
func (h History) Word(st trust.Standing, seated bool, now aweigh.Epoch) (string, error) {
	switch {
	case st.Barred:
		return "barred", nil
	case seated && st.Weighs > now:
		return "probation", nil
	case seated && st.Standby:
		return "standby", nil
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

// ChangesBack visits the changes of an anchor's trust, newest first, until visit returns false.
func (h History) ChangesBack(a aweigh.AnchorID, visit func(trust.Change) (more bool)) error {
	space := Record(h.Scope, 't', a[:]...)
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

// Fault returns the proof of fault that a change of trust rests on. It returns nil if the change rests on none, or if
// this node does not hold the block that has the proof.
func (h History) Fault(c trust.Change) (*scope.Proof, error) {
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
