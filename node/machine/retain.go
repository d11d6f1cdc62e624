package machine

import (
	"encoding/binary"
	"errors"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/internal/must"
	"github.com/aweigh/aweigh/kv"
)

const (
	dropsAtOnce = 500 // blocks whose content one step drops
	citedWork   = 50  // how many of those a block counts for whose proof is collected
	dropAgain   = 50 * time.Millisecond
	dropLater   = time.Second
)

// BlockStub is what stays of a final block when its content is dropped: enough to say in which block and when
// something happened.
type BlockStub struct {
	_        struct{} `cbor:",toarray"`
	Block    aweigh.Hash
	Time     aweigh.Instant
	Revision int64 // after the block; 0 where the block came with a snapshot
	Cited    bool  // its content stays for proofs: it opened motions, has proofs or a revocation, or this is unknown
}

// retention selects the final blocks whose content a machine drops: those whose changes were all compacted, except the
// newest blocks.
type retention struct {
	keep      aweigh.Height // how many of the newest blocks always stay; 0: all blocks stay
	below     aweigh.Height // all blocks below this height were examined
	compacted int64         // the compacted revision at that time
	at        aweigh.Instant
	more      bool // at the instant at, there may be more to drop
}

func (r *retention) open(h History, keep aweigh.Height) (err error) {
	r.keep = keep
	r.below, err = h.dropped()
	return err
}

// due drops some blocks if there are any to drop.
func (r *retention) due(m *Machine) {
	s := m.chain.state
	r.more = false
	switch compacted := s.Compacted(); {
	case r.keep == 0 || compacted == 0 || s.Height() <= r.keep+r.below:
	case m.now < r.at && compacted == r.compacted:
		r.more = true
	default:
		r.sweep(m, compacted, s.Height()-r.keep)
	}
}

// sweep drops blocks below the height to, up to the first one that has a change at or above the revision compacted.
func (r *retention) sweep(m *Machine, compacted int64, to aweigh.Height) {
	h, all, seen := m.history(), Record(m.id, 'h'), 0
	var ops []kv.Op
	err := h.Reader.Scan(KeyHeight(m.id, r.below), KeyHeight(m.id, to), false, func(k, raw []byte) bool {
		var p BlockStub
		must.OK(canon.Decode(raw, &p), "reading a block")
		at := aweigh.Height(binary.BigEndian.Uint64(k[len(all):]))
		if seen >= m.cfg.Bounds.DropsAtOnce || p.Revision >= compacted {
			to = at
			return false
		}
		if seen++; p.Cited {
			seen += citedWork
		}
		ops = append(ops, h.drop(at, &p)...)
		return true
	})
	must.OK(err, "reading the chain")
	if to > r.below {
		r.below = to
		m.write(append(ops, kv.Set(KeyDropped(m.id), binary.BigEndian.AppendUint64(nil, uint64(to))))...)
	}
	r.compacted, r.more = compacted, seen >= m.cfg.Bounds.DropsAtOnce
	if r.at = m.now.Add(m.cfg.Bounds.DropLater); r.more {
		r.at = m.now.Add(m.cfg.Bounds.DropAgain)
	}
}

// wake returns when to drop more blocks, 0 if there is no need.
func (r *retention) wake() aweigh.Instant {
	if !r.more {
		return 0
	}
	return r.at
}

// drop returns the ops that leave only the stub of a final block. The content of a cited block stays; the ops then add
// the proof that it is final, which may depend on blocks above it.
func (h History) drop(at aweigh.Height, p *BlockStub) (ops []kv.Op) {
	if p.Cited {
		f, err := h.Finality(at)
		if errors.Is(err, ErrNoBlock) { // it came with a snapshot that another snapshot replaced
			return nil
		}
		must.OK(err, "reading what makes a block final")
		return []kv.Op{kv.Set(KeyCited(h.Scope, at), canon.Encode(f))}
	}
	return []kv.Op{kv.Del(KeyBlock(h.Scope, p.Block)), kv.Del(KeyFinality(h.Scope, at))}
}

// stub returns the BlockStub of a block that was executed.
func (k *candidate) stub() BlockStub {
	h := k.block.Header
	cited := len(k.block.Proofs) > 0 || k.block.Revocation != nil
	for _, id := range k.result.Motions {
		mo, _, err := k.state.Motion(id)
		must.OK(err, "reading a motion")
		cited = cited || mo != nil && mo.Height == h.Height
	}
	return BlockStub{Block: k.block.Hash(), Time: h.Time, Revision: k.state.Head().Revision, Cited: cited}
}
