package scope

import (
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/aweigh/aweigh/internal/plain"
	"github.com/aweigh/aweigh/trust"
)

// Two kinds of decisions move trust itself. Attest sets the score of an anchor, where the anchors know what the chain
// cannot show. Readmit lifts the bar of an anchor that lied: it names the anchor in full, as an admission does, because
// the state keeps no identity of an anchor without a seat. Without an anchor, it is about an approver that is void.

// maxAttested bounds the reason of an Attest, in bytes.
const maxAttested = 512

// seats reports whether the decision gives its anchor a seat.
func (d *Decision) seats() bool { return d.Kind == Admit || d.Kind == Readmit && d.Anchor != nil }

// checkAttested reports whether an Attest is well-formed. A score of 0 is that of a liar alone.
func (d *Decision) checkAttested() error {
	switch {
	case d.Score == 0 || d.Score > trust.MaxScore:
		return fmt.Errorf("a score of %d; it is attested from 1 to %d", d.Score, trust.MaxScore)
	case d.Reason == "" || len(d.Reason) > maxAttested:
		return fmt.Errorf("a reason of %d bytes; a score is attested with one of 1 to %d", len(d.Reason), maxAttested)
	case !utf8.ValidString(d.Reason):
		return errors.New("a reason that is not UTF-8")
	}
	for _, r := range d.Reason {
		if plain.Hidden(r) {
			return fmt.Errorf("a reason with %q in it, which cannot be printed", r)
		}
	}
	return nil
}

// standing is what the trust ledger has of an anchor, with the proofs of fault of this block.
func (x *execution) standing(d *Decision) (trust.Standing, bool, error) {
	if x.ledger != nil {
		st, known := x.ledger.Standing(d.Subject)
		return st, known, nil
	}
	ledger, err := x.next.Ledger()
	if err != nil {
		return trust.Standing{}, false, err
	}
	st, known := ledger.Standing(d.Subject)
	return st, known, nil
}

// mayAttest reports why the score of an anchor cannot be set.
func (x *execution) mayAttest(d *Decision) (failure, err error) {
	st, _, err := x.standing(d)
	if err != nil {
		return nil, err
	}
	seat, seated := x.epoch.Roster.Seat(d.Subject)
	switch {
	case st.Barred:
		return fmt.Errorf("%s is barred, and has no score; readmit it first", d.Subject.Short()), nil
	case !seated:
		return fmt.Errorf("%s is no anchor", d.Subject.Short()), nil
	case st.Score == d.Score:
		return fmt.Errorf("%s has a score of %d already", x.epoch.Roster.Anchors[seat].Name, d.Score), nil
	}
	return nil, nil
}

// mayReadmit reports why the bar of an anchor cannot be lifted.
func (x *execution) mayReadmit(d *Decision) (failure, err error) {
	st, known, err := x.standing(d)
	if err != nil {
		return nil, err
	}
	seat, seated := x.epoch.Roster.Seat(d.Subject)
	switch {
	case !known:
		return fmt.Errorf("%s was never an anchor here; it can apply (aweigh anchor apply)", d.Subject.Short()), nil
	case seated && st.Barred:
		return fmt.Errorf("%s has a seat until this epoch ends; propose it again in the next one", x.epoch.Roster.Anchors[seat].Name), nil
	case !st.Barred:
		return fmt.Errorf("%s is not barred, so there is no bar to lift", d.Subject.Short()), nil
	}
	return x.hasRoom(d.Anchor), nil
}

// hasRoom reports why the roster has no seat for another anchor.
func (x *execution) hasRoom(is *Anchor) error {
	r := x.epoch.Roster
	if len(r.Anchors) >= x.policy.Limits.Anchors {
		return fmt.Errorf("the roster has %d anchors already, as many as the policy takes", len(r.Anchors))
	}
	for _, a := range r.Anchors {
		if a.Peer == is.Peer {
			return fmt.Errorf("the node %s holds the anchor %s already", a.Peer, a.Name)
		}
		if a.Name == is.Name {
			return fmt.Errorf("an anchor is called %s already; apply with another name", a.Name)
		}
	}
	return nil
}
