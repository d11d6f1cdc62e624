package scope

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
)

// An island may come back weeks after it was founded. So the state keeps the hashes of the terms of past epochs, by
// which it knows who the anchors were then.

// pastTerms names the terms of an epoch.
type pastTerms struct {
	_      struct{} `cbor:",toarray"`
	Number aweigh.Epoch
	Terms  aweigh.Hash
}

// termsAt names the terms of the epoch that a block belongs to; zero if they are not on record. Of epoch 0, the genesis
// is the record.
func (x *execution) termsAt(at aweigh.Height) (known pastTerms, err error) {
	var bad error
	found := false
	to := binary.BigEndian.AppendUint64(x.space.at(atTerms), uint64(at)+1)
	err = x.r.Scan(x.space.at(atTerms), to, true, func(_, raw []byte) bool {
		bad, found = canon.Decode(raw, &known), true
		return false
	})
	if bad != nil {
		err = fmt.Errorf("%w: the terms of an epoch: %w", ErrCorrupt, bad)
	}
	if found || err != nil {
		return known, err
	}
	if x.epoch.Number >= maxPastTerms { // its terms are as old as those that were forgotten
		return known, nil
	}
	g, err := x.next.Genesis()
	if err != nil || len(g.Policy.Partitions) == 0 || g.IsIsland() {
		return known, err
	}
	e, err := g.Epoch()
	if err != nil {
		return known, err
	}
	t := e.Terms()
	return pastTerms{Terms: t.Hash(0)}, nil
}

// recordTerms keeps the name of the terms of an epoch that begins, if islands may be founded in it or in the one
// before, and forgets the oldest.
func (x *execution) recordTerms(e *Epoch, h aweigh.Hash) error {
	if len(e.Policy.Partitions) == 0 && len(x.policy.Partitions) == 0 || e.Policy.IsIsland() {
		return nil
	}
	k := binary.BigEndian.AppendUint64(x.space.at(atTerms), uint64(e.Start))
	x.setRecord(k, canon.Encode(pastTerms{Number: e.Number, Terms: h}))
	var old [][]byte
	var bad error
	err := x.r.Scan(x.space.at(atTerms), k, false, func(k, raw []byte) bool {
		var p pastTerms
		if bad = canon.Decode(raw, &p); bad != nil || p.Number+maxPastTerms > e.Number || len(old) == 2 {
			return false
		}
		old = append(old, bytes.Clone(k))
		return true
	})
	if bad != nil {
		err = fmt.Errorf("%w: the terms of an epoch: %w", ErrCorrupt, bad)
	}
	for _, k := range old {
		if err == nil {
			err = x.dropRecord(k)
		}
	}
	return err
}
