package node

import (
	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/scope"
)

// foreignReceipt is a Receipt.
type foreignReceipt struct {
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

// EncodeReceipts are what an anchor answers to ForeignSubmit.
func EncodeReceipts(all []Receipt) []byte {
	out := make([]foreignReceipt, len(all))
	for i := range all {
		r := &all[i]
		out[i] = foreignReceipt{
			Mutation: r.Mutation, Code: uint8(r.Code), Reason: r.Reason, Revision: r.Revision, Succeeded: r.Succeeded,
			Height: r.Height, Epoch: r.Epoch, Responses: r.Responses,
		}
	}
	return canon.Encode(out)
}

// DecodeReceipts are those of a scope in an answer to ForeignSubmit or ForeignOutcome.
func DecodeReceipts(body []byte, id aweigh.ScopeID) ([]Receipt, error) {
	var all []foreignReceipt
	if err := canon.Decode(body, &all); err != nil {
		return nil, err
	}
	out := make([]Receipt, len(all))
	for i := range all {
		r := &all[i]
		out[i] = Receipt{
			Outcome: scope.Outcome{
				Mutation: r.Mutation, Code: scope.Code(r.Code), Reason: r.Reason, Revision: r.Revision, Succeeded: r.Succeeded, Responses: r.Responses,
			},
			Height: r.Height, Epoch: r.Epoch, Scope: id,
		}
	}
	return out, nil
}

// bareReceipts are receipts without responses; what is no such thing stays as it is.
func bareReceipts(body []byte) []byte {
	var all []foreignReceipt
	if canon.Decode(body, &all) != nil {
		return body
	}
	for i := range all {
		all[i].Responses = nil
	}
	return canon.Encode(all)
}
