package scope

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/aweigh/aweigh"
)

// Trusted is a roster of the root scope that is known from a trusted source. A chain of handovers shows which anchors
// signed, but not when: former anchors, and holders of their keys, can sign another history from then on, long after
// they left. A chain that contains a roster that is known to have been in force recently is not one of those (weak
// subjectivity; "long-range attacks").
type Trusted struct {
	Epoch  aweigh.Epoch
	Roster aweigh.Hash // Roster.Hash
}

// TrustedOf is the roster of an epoch.
func TrustedOf(e *Epoch) Trusted { return Trusted{e.Number, e.Roster.Hash()} }

// String is the number of the epoch, a colon and the roster's hash in hexadecimal.
func (t Trusted) String() string { return fmt.Sprintf("%d:%s", t.Epoch, t.Roster) }

// ParseTrusted reads the form of String.
func ParseTrusted(s string) (t Trusted, err error) {
	number, digits, _ := strings.Cut(s, ":")
	n, err := strconv.ParseUint(number, 10, 64)
	if err == nil {
		t.Roster, err = aweigh.ParseHash(digits)
	}
	if err == nil && t.Roster.IsZero() {
		return Trusted{}, fmt.Errorf("%w: no roster has the hash 0", ErrInvalid)
	}
	if err != nil || strconv.FormatUint(n, 10) != number {
		return Trusted{}, fmt.Errorf("%w: a roster is EPOCH:HASH, a number and 64 hexadecimal digits, not %q", ErrInvalid, s)
	}
	t.Epoch = aweigh.Epoch(n)
	return t, nil
}

// In checks that a chain of handovers from the genesis of a root scope contains
// the roster. Errors wrap ErrProof.
func (t Trusted) In(g Genesis, chain []Handover) error {
	if t.Epoch > aweigh.Epoch(len(chain)) {
		return fmt.Errorf("%w: it leads to epoch %d, and the trusted roster is of epoch %d: nothing shows that both are of one history. Ask for a newer proof", ErrProof, len(chain), t.Epoch)
	}
	e, err := g.Epoch()
	if err == nil {
		e, err = e.followAll(chain[:t.Epoch])
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrProof, err)
	}
	return t.Is(e)
}

// Is checks that an epoch has the roster, if it is the epoch that Trusted names.
// Errors wrap ErrProof.
func (t Trusted) Is(e *Epoch) error {
	if got := e.Roster.Hash(); e.Number == t.Epoch && got != t.Roster {
		return fmt.Errorf("%w: its roster of epoch %d is %s, and the trusted one is %s: it is another history, as old keys can sign one", ErrProof, t.Epoch, got, t.Roster)
	}
	return nil
}

// Root is where an ancestry begins: the root scope, with the handovers that lead from
// its genesis.
func (a *Ancestry) Root() (Genesis, []Handover) { return rootOf(a.Genesis, a.Handovers, a.Above) }

// Root is that of Ancestry.
func (p *FaultProof) Root() (Genesis, []Handover) { return rootOf(p.Genesis, p.Handovers, p.Above) }

func rootOf(g Genesis, chain []Handover, above []Step) (Genesis, []Handover) {
	if len(above) > 0 {
		return above[0].Genesis, above[0].Handovers
	}
	return g, chain
}
