package node

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
	citedWork   = 50  // of those, for one whose proof is collected
	dropAgain   = 50 * time.Millisecond
	dropLater   = time.Second
)

// pillar is what stays of a final block when its content is dropped: enough to say in
// which block and when something happened.
type pillar struct {
	_        struct{} `cbor:",toarray"`
	Block    aweigh.Hash
	Time     aweigh.Instant
	Revision int64 // after the block; 0 where the block came with a snapshot
	Cited    bool  // its content stays: proofs need it, as it opened motions or has proofs of faults, or nobody knows
}

// retention is which final blocks a machine drops the content of: those all of whose
// changes were compacted, but for the newest.
type retention struct {
	keep      aweigh.Height // how many of the newest stay in any case; 0: all blocks stay
	below     aweigh.Height // what is below was looked at
	compacted int64         // when they were looked at last
	at        aweigh.Instant
	more      bool // there may be more to drop, at that time
}

// keep is how many: whoever lacks more takes a snapshot.
func (cfg *Config) keep() aweigh.Height {
	if !cfg.Prune {
		return 0
	}
	return 2 * cfg.SnapshotBehind
}

func (r *retention) open(h History, keep aweigh.Height) (err error) {
	r.keep = keep
	r.below, err = h.dropped()
	return err
}

// due drops some blocks, if there are any to drop.
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

// sweep drops blocks up to a height, as long as all of their changes are below a revision.
func (r *retention) sweep(m *Machine, compacted int64, to aweigh.Height) {
	h, all, seen := m.history(), record(m.id, 'h'), 0
	var ops []kv.Op
	err := h.Reader.Scan(keyHeight(m.id, r.below), keyHeight(m.id, to), false, func(k, raw []byte) bool {
		var p pillar
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
		m.write(append(ops, kv.Set(keyDropped(m.id), binary.BigEndian.AppendUint64(nil, uint64(to))))...)
	}
	r.compacted, r.more = compacted, seen >= m.cfg.Bounds.DropsAtOnce
	if r.at = m.now.Add(m.cfg.Bounds.DropLater); r.more {
		r.at = m.now.Add(m.cfg.Bounds.DropAgain)
	}
}

// wake is when to look again, 0 if there is no need.
func (r *retention) wake() aweigh.Instant {
	if !r.more {
		return 0
	}
	return r.at
}

// drop gives the ops that leave of a final block only its pillar. Of one that is cited
// the content stays, and gets the proof that it is final, which may be in blocks above.
func (h History) drop(at aweigh.Height, p *pillar) (ops []kv.Op) {
	if p.Cited {
		f, err := h.Finality(at)
		if errors.Is(err, ErrNoBlock) { // it came with a snapshot that was replaced by another
			return nil
		}
		must.OK(err, "reading what makes a block final")
		return []kv.Op{kv.Set(keyCited(h.Scope, at), canon.Encode(f))}
	}
	return []kv.Op{kv.Del(keyBlock(h.Scope, p.Block)), kv.Del(keyFinality(h.Scope, at))}
}

// pillar is that of a block which was executed.
func (k *candidate) pillar() pillar {
	h := k.block.Header
	cited := len(k.block.Proofs) > 0 || k.block.Revocation != nil
	for _, id := range k.result.Motions {
		mo, _, err := k.state.Motion(id)
		must.OK(err, "reading a motion")
		cited = cited || mo != nil && mo.Height == h.Height
	}
	return pillar{Block: k.block.Hash(), Time: h.Time, Revision: k.state.Head().Revision, Cited: cited}
}
