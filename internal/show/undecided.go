package show

import (
	"encoding/hex"
	"fmt"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/client"
)

// Nonce is a Once as the flag --nonce takes it.
func Nonce(o *aweighv1.Once) string {
	text := fmt.Sprintf("%x@%d", o.GetNonce(), o.GetValidUntilNs())
	if o.GetPatient() {
		text += "@pending"
	}
	return text
}

// Undecided writes, in JSON, that a write is not committed yet and may still commit, and whether it will open a motion.
// The rest is in the error.
func (p Printer) Undecided(u *client.Undecided, opens bool) error {
	if p.Format != JSON {
		return nil
	}
	return p.JSON(struct {
		Undecided  bool   `json:"undecided"`
		Mutation   string `json:"mutation"`       // "" if the node did not answer
		ValidUntil int64  `json:"valid_until_ns"` // it can commit until then
		Nonce      string `json:"nonce"`          // for --nonce, to repeat it safely
		Node       string `json:"node,omitempty"` // address of the one that may have taken it, for --api
		Opens      bool   `json:"opens_motion"`   // called as the mutation, when a block can be made: it takes approval
	}{true, hex.EncodeToString(u.Mutation), u.ValidUntil.UnixNano(), Nonce(u.Once), u.Node, opens})
}
