package referral

import (
	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/scope"
)

// Receipt is a machine.Receipt in its encoded form.
type Receipt struct {
	_         struct{} `cbor:",toarray"`
	Mutation  aweigh.Hash
	Code      uint8
	Reason    string
	Revision  int64
	Succeeded bool
	Height    aweigh.Height
	Epoch     aweigh.Epoch
	Responses []scope.Response
}

// EncodeReceipts returns the body of an anchor's answer to AskSubmit.
func EncodeReceipts(all []machine.Receipt) []byte {
	out := make([]Receipt, len(all))
	for i := range all {
		r := &all[i]
		out[i] = Receipt{
			Mutation: r.Mutation, Code: uint8(r.Code), Reason: r.Reason, Revision: r.Revision, Succeeded: r.Succeeded,
			Height: r.Height, Epoch: r.Epoch, Responses: r.Responses,
		}
	}
	return canon.Encode(out)
}

// DecodeReceipts returns the receipts in an answer of scope id to AskSubmit or AskOutcome.
func DecodeReceipts(body []byte, id aweigh.ScopeID) ([]machine.Receipt, error) {
	var all []Receipt
	if err := canon.Decode(body, &all); err != nil {
		return nil, err
	}
	out := make([]machine.Receipt, len(all))
	for i := range all {
		r := &all[i]
		out[i] = machine.Receipt{
			Outcome: scope.Outcome{
				Mutation: r.Mutation, Code: scope.Code(r.Code), Reason: r.Reason, Revision: r.Revision, Succeeded: r.Succeeded, Responses: r.Responses,
			},
			Height: r.Height, Epoch: r.Epoch, Scope: id,
		}
	}
	return out, nil
}

// bareReceipts returns encoded receipts without their responses. It returns any other body unchanged.
func bareReceipts(body []byte) []byte {
	var all []Receipt
	if canon.Decode(body, &all) != nil {
		return body
	}
	for i := range all {
		all[i].Responses = nil
	}
	return canon.Encode(all)
}
