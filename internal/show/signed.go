package show

import (
	"fmt"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/internal/wysiwys"
	"github.com/aweigh/aweigh/scope"
)

// longest is how many bytes of one value a text shows.
const longest = 4096

// ToSign writes all content that is to be signed; what names it.
func (p Printer) ToSign(what string, f wysiwys.Form) error {
	_, err := fmt.Fprintf(p.Out, "%s, in full:\n%s", what, f.Text(longest))
	return err
}

// openingOf renders a motion as it opened. inForce is the policy that was in force then, if
// that is known.
func openingOf(m *aweighv1.Motion, inForce *scope.Policy) (*wysiwys.Shown, error) {
	mo := new(scope.Motion)
	if err := canon.Decode(m.Opening, mo); err != nil {
		return nil, fmt.Errorf("%w: motion %s: %w", wysiwys.ErrHidden, short(m.Id), err)
	}
	if id := mo.ID(); string(id[:]) != string(m.Id) {
		return nil, fmt.Errorf("%w: the node sent motion %s for %s", wysiwys.ErrHidden, id.Short(), short(m.Id))
	}
	if inForce != nil && inForce.Hash() != mo.Policy {
		inForce = nil
	}
	return wysiwys.Motion(mo, inForce)
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
