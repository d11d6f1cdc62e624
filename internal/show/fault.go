package show

import (
	"encoding/hex"
	"fmt"

	"github.com/aweigh/aweigh/scope"
)

// Fault writes the content of a verified proof against an anchor, in the epoch
// of its ballots; pinned reports whether its network was compared with one
// known from elsewhere.
func (p Printer) Fault(f *scope.FaultProof, e *scope.Epoch, who scope.Anchor, pinned bool) error {
	id, weight, total := who.Key.ID(), e.Roster.Weights.Of(who.Key.ID()), e.Roster.Weights.Total()
	first, second := f.Proof.First.Subject.String(), f.Proof.Second.Subject.String()
	if p.Format == JSON {
		return p.JSON(struct {
			Network string    `json:"network"`
			Pinned  bool      `json:"pinned"`
			Anchor  string    `json:"anchor"`
			Name    string    `json:"name"`
			Epoch   uint64    `json:"epoch"`
			Weight  uint64    `json:"weight"` // in that epoch
			Total   uint64    `json:"total_weight"`
			Signed  [2]string `json:"signed"`
		}{f.Genesis.Hash().String(), pinned, hex.EncodeToString(id[:]), who.Name, uint64(e.Number), weight, total, [2]string{first, second}})
	}
	rows := [][]string{
		{"anchor", fmt.Sprintf("%s  %s", who.Name, id)},
		{"lied", fmt.Sprintf("in epoch %d, where it weighed %d of %d: it signed both", e.Number, weight, total)},
		{"", first}, {"", second},
	}
	if err := p.table(rows...); err != nil {
		return err
	}
	text := "verified here for network %s\n"
	if !pinned {
		text = "consistent with itself, for network %s; give --network to compare\n"
	}
	_, err := fmt.Fprintf(p.Out, text, f.Genesis.Hash())
	return err
}
