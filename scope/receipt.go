package scope

import (
	"encoding/binary"
	"fmt"

	"github.com/aweigh/aweigh"
)

// Code is the outcome of a mutation in a block.
type Code uint8

const (
	// Applied means that it was executed; a transaction that chose its Failure
	// branch was applied too.
	Applied Code = 1
	// Failed means that it could not be executed, for the reason given, and
	// changed nothing. It is on record and will never apply.
	Failed Code = 2
	// Duplicate means that it is on record from earlier; the Outcome is that of
	// then. It leaves no trace.
	Duplicate Code = 3
	// Expired means that it came after its ValidUntil. It leaves no trace.
	Expired Code = 4
	// Refused means that it should not be in the block: it names another scope,
	// or its ValidUntil lies further ahead than the policy allows. It leaves no
	// trace.
	Refused Code = 5
	// Exceeded means that the mutation would have cost more than its bundle declares.
	// It changed nothing, and that is on record: this bundle will never apply it; a
	// bundle that reserves more may.
	Exceeded Code = 7
	// Pending means that it waits for approval, and applies once it has it (P28):
	// State.Motion has the result. It is on record.
	Pending Code = 6
)

// String is the code in lower case.
func (c Code) String() string {
	switch c {
	case Applied:
		return "applied"
	case Failed:
		return "failed"
	case Duplicate:
		return "duplicate"
	case Expired:
		return "expired"
	case Refused:
		return "refused"
	case Pending:
		return "pending"
	case Exceeded:
		return "exceeded"
	}
	return fmt.Sprintf("code(%d)", uint8(c))
}

// Receipt is what a scope keeps of a mutation until its ValidUntil has passed, so that the mutation never applies
// twice and a repeated request gets its outcome. A receipt with code Exceeded is of a bundle.
type Receipt struct {
	Code      Code // Applied, Failed, Pending or Exceeded
	Succeeded bool // a transaction's compares held
	Height    aweigh.Height
	Index     uint32 // place among the block's mutations, from 0
	Revision  int64  // of the key space after it
	Reason    string // why it failed or exceeded; see Failure
}

// record is the receipt's one encoding: code, succeeded, then height, index and
// revision as unsigned LEB128, then the reason.
func (c *Receipt) record() []byte {
	b := make([]byte, 2, 2+3*binary.MaxVarintLen64+len(c.Reason))
	b[0] = byte(c.Code)
	if c.Succeeded {
		b[1] = 1
	}
	b = binary.AppendUvarint(b, uint64(c.Height))
	b = binary.AppendUvarint(b, uint64(c.Index))
	b = binary.AppendUvarint(b, uint64(c.Revision))
	return append(b, c.Reason...)
}

// readReceipt reads what record wrote. Errors wrap ErrCorrupt.
func readReceipt(data []byte) (Receipt, error) {
	r := reader{data: data}
	code, succeeded := r.byte(), r.byte()
	height, index, rev := r.int64(), r.int64(), r.int64()
	c := Receipt{
		Code:      Code(code),
		Succeeded: succeeded == 1,
		Height:    aweigh.Height(height),
		Index:     uint32(index),
		Revision:  rev,
		Reason:    string(r.data),
	}
	undone := c.Code == Failed || c.Code == Exceeded
	if r.bad || succeeded > 1 || c.Code != Applied && c.Code != Pending && !undone || index>>32 != 0 ||
		undone != (c.Reason != "") {
		return Receipt{}, fmt.Errorf("%w: a receipt of %d bytes", ErrCorrupt, len(data))
	}
	return c, nil
}

// Outcome is the receipt of a mutation, if it is still on record.
func (s *State) Outcome(mutation aweigh.Hash) (Receipt, bool, error) {
	raw, ok, err := s.r.Get(s.space.at(atReceipt, mutation[:]...))
	if err != nil || !ok {
		return Receipt{}, false, err
	}
	c, err := readReceipt(raw)
	return c, err == nil, err
}

// OutcomeIn is the receipt of a mutation, if it is still on record, or that of a bundle which exceeded what it
// declares, and so never carries the mutation. Another bundle may, and Outcome ignores this one.
func (s *State) OutcomeIn(bundle, mutation aweigh.Hash) (Receipt, bool, error) {
	if c, ok, err := s.Outcome(mutation); ok || err != nil {
		return c, ok, err
	}
	return s.Outcome(exceeding(bundle))
}
