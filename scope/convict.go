package scope

import (
	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/trust"
)

// judge brings the block's proofs of fault to the trust ledger.
func (x *execution) judge(proofs []Proof) error {
	if len(proofs) == 0 {
		return nil
	}
	h := &x.block.Header
	evidence := make([]trust.Evidence, len(proofs))
	for i := range proofs {
		evidence[i] = trust.Evidence{
			Anchor: proofs[i].Anchor(), Kind: trust.Equivocated, Epoch: h.Epoch, Height: h.Height,
			Proof: ProofHash(&proofs[i]),
		}
	}
	return x.convict(evidence...)
}

// convict brings proven faults to the trust ledger.
func (x *execution) convict(evidence ...trust.Evidence) error {
	ledger, err := x.standings()
	if err != nil {
		return err
	}
	ledger, changes := ledger.ApplyExplained(x.policy.Trust, evidence...)
	x.result.Trust = append(x.result.Trust, changes...)
	x.ledger = &ledger
	x.tally.early = true // a liar keeps its weight no longer than that
	return nil
}

// standings is the trust ledger as the block has left it so far.
func (x *execution) standings() (trust.Ledger, error) {
	if x.ledger != nil {
		return *x.ledger, nil
	}
	return x.next.Ledger()
}

// ProofHash names a proof of fault, as the evidence of a change of trust does.
func ProofHash(p *Proof) aweigh.Hash { return canon.Hash("aweigh/proof/1", *p) }
