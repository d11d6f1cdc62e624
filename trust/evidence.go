package trust

import (
	"fmt"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
)

// Score is an anchor's trust in parts per million, 0 to MaxScore.
type Score uint32

// MaxScore is full trust.
const MaxScore Score = 1_000_000

// EvidenceKind is the kind of an act of an anchor, or of a decision about it.
type EvidenceKind uint8

const (
	// Founded makes an anchor of the genesis, with the score it gives.
	Founded EvidenceKind = 1
	// Equivocated is a proof that the anchor signed two conflicting ballots. The
	// score falls to 0, and the anchor is barred.
	Equivocated EvidenceKind = 2
	// Attested is a carried motion that sets the score of an anchor in good
	// standing. It does not lift a bar.
	Attested EvidenceKind = 3
	// Readmitted is a carried motion that lifts the bar of an equivocator,
	// which starts again from Params.Initial. It begins its probation again.
	Readmitted EvidenceKind = 4
	// Attended is an anchor's Record in one epoch: the chain gives one for each
	// anchor when the epoch ends. It counts for one that left in the epoch as
	// well, so that no anchor can leave before the reckoning.
	Attended EvidenceKind = 5
	// Admitted seats an anchor that a carried motion admitted, with a Sponsor
	// that must be seated and past probation. A new one starts from
	// Params.Initial; one that returns from its old score, but no more than that;
	// a bar is lifted as by Readmitted. Probation begins, again if need be.
	Admitted EvidenceKind = 6
	// Retired is an anchor that left by itself. Score and standing stay.
	Retired EvidenceKind = 7
	// Evicted is an anchor that a carried motion removed. Score and standing stay.
	Evicted EvidenceKind = 8
	// Surety is a sponsor's loss when an anchor that it brought in is proven to
	// lie. The ledger makes it itself; it is ignored if it comes from outside.
	Surety EvidenceKind = 9
	// Warned is a ballot of the anchor against a motion that a later one reversed, see Params.Credits.
	Warned EvidenceKind = 10
	// Called is an anchor on standby, or new, that weighs from the next epoch on. It is ignored if it comes from
	// outside, as is Rested: Ledger.Regroup makes both.
	Called EvidenceKind = 11
	// Rested is an anchor that goes on standby.
	Rested EvidenceKind = 12
)

// String is the kind in lower case.
func (k EvidenceKind) String() string {
	switch k {
	case Founded:
		return "founded"
	case Equivocated:
		return "equivocated"
	case Attested:
		return "attested"
	case Readmitted:
		return "readmitted"
	case Attended:
		return "attended"
	case Admitted:
		return "admitted"
	case Retired:
		return "retired"
	case Evicted:
		return "evicted"
	case Surety:
		return "surety"
	case Warned:
		return "warned"
	case Called:
		return "called"
	case Rested:
		return "rested"
	}
	return fmt.Sprintf("evidence(%d)", uint8(k))
}

// Evidence is one event on the final chain that bears on one anchor's trust.
type Evidence struct {
	_      struct{} `cbor:",toarray"`
	Anchor aweigh.AnchorID
	Kind   EvidenceKind
	Score  Score         // for Founded and Attested; for Warned the most blame that it takes; others leave it 0
	Epoch  aweigh.Epoch  // in which the evidence became final
	Height aweigh.Height // of the block that carries it; 0 is the genesis
	Proof  aweigh.Hash   // of the proof or the motion; zero for Founded and Attended

	Record  Attendance      // for Attended
	Sponsor aweigh.AnchorID // for Admitted
	By      aweigh.Hash     // for Warned: the motion that reversed the one that Proof names
}

// Hash names the evidence.
func (e Evidence) Hash() aweigh.Hash {
	return canon.Hash("aweigh/trust-evidence/1", e)
}

// Attendance is an anchor's part in one epoch, counted over the final blocks for
// which ballots were still taken up. Ballots for the other Blocks − Timely −
// Late blocks are missing. It also counts what contested motions show of the anchor's judgement.
type Attendance struct {
	_         struct{} `cbor:",toarray"`
	Blocks    uint32   // counted final blocks of the epoch
	Timely    uint32   // those with the anchor's finalize ballot on the chain in time
	Late      uint32   // those with it, but late: they earn half
	Led       uint32   // views that the anchor led and that became final
	Nullified uint32   // views that it led and that were nullified

	// Of the contested motions that ended in the epoch and on which it had a vote:
	With    uint32 // those with a ballot for the outcome, before that was clear
	Against uint32 // those with one against it
	Silent  uint32 // those without such a ballot past the time for an answer
}

// Change is what one piece of evidence did to one anchor's score. Evidence
// without effect has a Change as well, with equal scores and the reason.
type Change struct {
	_             struct{} `cbor:",toarray"`
	Epoch         aweigh.Epoch
	Evidence      Evidence
	Before, After Score
	Reason        string
}

// String is one line for people, like "epoch 3: 4bf5122f 500000 -> 0: equivocated: …".
func (c Change) String() string {
	return fmt.Sprintf("epoch %d: %s %d -> %d: %s", c.Epoch, c.Evidence.Anchor.Short(), c.Before, c.After, c.Reason)
}

// founder is what gives the score of a Founded.
func (e *Evidence) founder() string {
	if e.Height > 0 {
		return "scope above"
	}
	return "genesis"
}
