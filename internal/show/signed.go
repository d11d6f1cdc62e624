package show

import (
	"bytes"
	"fmt"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/internal/wysiwys"
	"github.com/aweigh/aweigh/scope"
)

// ToSign writes all content that is to be signed; what names it.
func (p Printer) ToSign(what string, shown *wysiwys.Shown) error {
	_, err := fmt.Fprintf(p.Out, "%s, in full:\n%s", what, shown.Text())
	return err
}

// Opening returns a motion as it opened, as the node states it. An error wraps ErrHidden if the motion cannot be read,
// or is another one, or another mutation, than the node names.
func Opening(m *aweighv1.Motion) (*scope.Motion, error) {
	mo := new(scope.Motion)
	if err := canon.Decode(m.Opening, mo); err != nil {
		return nil, fmt.Errorf("%w: motion %s: %w", wysiwys.ErrHidden, short(m.Id), err)
	}
	if id := mo.ID(); !bytes.Equal(id[:], m.Id) {
		return nil, fmt.Errorf("%w: the node sent motion %s for %s", wysiwys.ErrHidden, id.Short(), short(m.Id))
	}
	if !bytes.Equal(mo.Mutation, m.Mutation) {
		return nil, fmt.Errorf("%w: the node sent two mutations of motion %s", wysiwys.ErrHidden, short(m.Id))
	}
	return mo, nil
}

func openingOf(m *aweighv1.Motion) (*wysiwys.Shown, error) {
	mo, err := Opening(m)
	if err != nil {
		return nil, err
	}
	return wysiwys.Motion(mo, nil)
}

// ToVote writes a motion that is to be voted on, as it opened: with its rule, voters, deadline, what it found, and what
// a put with a lease means. what names it, and shown is its rendering.
func (p Printer) ToVote(what string, mo *scope.Motion, shown *wysiwys.Shown) error {
	if err := p.ToSign(what, shown); err != nil {
		return err
	}
	t, err := mo.Txn()
	if err != nil || t == nil {
		return err
	}
	effects, _ := mo.Effects(t)
	for i := range effects {
		if e := &effects[i]; e.Op.Lease != 0 {
			fmt.Fprintf(p.Out, "%s %s\n", Line(Key(e.Op.Key)), leaseText(e.Op.Lease, e.Found.TTL, e.Found.Keeper[:], mo.NameOf(e.Found.Keeper)))
		}
	}
	return nil
}

// Told reports which node told something, and as of when.
func Told(h *aweighv1.Header) string {
	by := h.GetNode()
	if by == "" {
		by = "the node"
	}
	s := fmt.Sprintf("as of block %d, reported by %s", h.GetHeight(), Line(by))
	if !h.GetLinearizable() {
		s += " alone: no quorum answered, and it may be old"
	}
	return s
}

// alone is what follows a line that one node told without a quorum; nothing if there was one.
func alone(h *aweighv1.Header) string {
	if h.GetLinearizable() {
		return ""
	}
	return "; " + Told(h)
}

// toldAlone writes below a table that one node told it without a quorum; nothing if there was one.
func (p Printer) toldAlone(h *aweighv1.Header) error {
	if h.GetLinearizable() {
		return nil
	}
	_, err := fmt.Fprintf(p.Out, "\n%s\n", Told(h))
	return err
}
