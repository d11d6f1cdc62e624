package scope

import (
	"errors"
	"fmt"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
)

// FaultProof shows that an anchor of the scope contradicted itself (P36). A verifier needs only the network's
// identity.
type FaultProof struct {
	_         struct{} `cbor:",toarray"`
	Genesis   Genesis
	Handovers []Handover // from epoch 0 to that of the ballots
	Proof     Proof
	Above     []Step // as in Ancestry
}

// Verify checks the proof from the network's identity alone. It returns the epoch of the ballots and the anchor that
// signed both. Errors wrap ErrProof.
func (p *FaultProof) Verify(network aweigh.NetworkID) (*Epoch, Anchor, error) {
	e, a, err := p.verify(network)
	if err != nil {
		return nil, Anchor{}, fmt.Errorf("%w: %w", ErrProof, err)
	}
	return e, a, nil
}

func (p *FaultProof) verify(network aweigh.NetworkID) (*Epoch, Anchor, error) {
	if err := p.Genesis.descends(network, p.Above); err != nil {
		return nil, Anchor{}, err
	}
	first, err := p.Genesis.Epoch()
	if err != nil {
		return nil, Anchor{}, err
	}
	e, err := first.followAll(p.Handovers)
	if err != nil {
		return nil, Anchor{}, err
	}
	k, err := e.Keyring()
	if err != nil {
		return nil, Anchor{}, err
	}
	if err := p.Proof.Check(k); err != nil {
		return nil, Anchor{}, err
	}
	seat, ok := e.Roster.Seat(p.Proof.Anchor())
	if !ok {
		return nil, Anchor{}, errors.New("it is about no anchor of the roster")
	}
	return e, e.Roster.Anchors[seat], nil
}

// Encode is the proof's canonical encoding.
func (p *FaultProof) Encode() []byte { return canon.Encode(p) }

// DecodeFaultProof reads what Encode wrote. It verifies nothing. Errors wrap
// ErrProof.
func DecodeFaultProof(data []byte) (*FaultProof, error) { return decodeProof[FaultProof](data) }
