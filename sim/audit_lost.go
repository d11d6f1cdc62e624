package sim

import (
	"encoding/binary"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/must"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/node/machine"
)

// A node whose disk forgot what it signed counts as faulty, but must still keep P9: shown a ballot of its own that
// its record does not have, it marks the loss, and signs no further ballot in the epoch, in later lives either.

// The kinds of records of a guard below view 0, see votes.Guard.
const (
	floorMark = 0
	lostMark  = 1
)

// guardKey is the key of a record of a guard.
func (w *World) guardKey(epoch aweigh.Epoch, v aweigh.View, kind byte) []byte {
	k := binary.BigEndian.AppendUint64(append([]byte{guardSpace}, w.id[:]...), uint64(epoch))
	return append(binary.BigEndian.AppendUint64(k, uint64(v)), kind)
}

// guardMark is the kind of a mark of this scope, and its epoch; ok is false if it is not one.
func (w *World) guardMark(op kv.Op) (kind byte, epoch aweigh.Epoch, ok bool) {
	const at = 1 + len(aweigh.ScopeID{})
	k := op.Key
	if op.Delete || len(k) != at+17 || k[0] != guardSpace || aweigh.ScopeID(k[1:at]) != w.id || binary.BigEndian.Uint64(k[at+8:]) != 0 {
		return 0, 0, false
	}
	return k[at+16], aweigh.Epoch(binary.BigEndian.Uint64(k[at:])), true
}

// has reports whether a node's disk has a record.
func (n *Node) has(key []byte) (value []byte, ok bool) {
	value, ok, err := n.Disk.Get(key)
	must.OK(err, "reading a disk")
	return value, ok
}

// reminds reports whether a frame shows a node a ballot of its own that its disk forgot.
// From a node without a seat no ballot is taken.
func (x *watch) reminds(from, to *Node, f *frame) bool {
	if !to.faulty || to.spoiled || to.disk.planted || to.busy || to.paused || to.key == nil || to.liar != nil || from.liar != nil || from.faulty {
		return false
	}
	w := x.w
	o, ok := f.open().(machine.Offer)
	e := to.machine.Epoch()
	self := to.anchorID()
	if !ok || o.Domain != e.Domain() || !to.seats(to) || !to.seats(from) {
		return false
	}
	floor := aweigh.View(0)
	if raw, ok := to.has(w.guardKey(e.Number, 0, floorMark)); ok && len(raw) == 8 {
		floor = aweigh.View(binary.BigEndian.Uint64(raw))
	}
	for _, v := range o.Votes {
		if v.Signature.Anchor != self || v.Subject.View < floor {
			continue
		}
		if _, known := to.has(w.guardKey(e.Number, v.Subject.View, byte(v.Subject.Kind))); !known {
			return true
		}
	}
	return false
}

// reminded checks what a node does that was shown such a ballot.
func (x *watch) reminded(n *Node, epoch aweigh.Epoch, life int) {
	if n.machine == nil || n.life != life || n.busy || n.machine.Epoch().Number != epoch {
		return
	}
	_, marked := n.has(x.w.guardKey(epoch, 0, lostMark))
	x.w.holds(Ballots, n, marked, "was shown a ballot of its own that its record does not have, and does not note that it lost some (P9)")
}

// silent checks that a node that found its record lost signs no further ballot in the epoch. On start the mark is on
// its disk.
func (x *watch) silent(n *Node, op kv.Op, starts bool) {
	if n.liar != nil || n.spoiled {
		return
	}
	if kind, epoch, ok := x.w.guardMark(op); ok && kind == lostMark {
		n.lost = epoch + 1
	} else if !ok && !op.Delete && !starts && n.lost > 0 && len(op.Key) > 41 {
		epoch := aweigh.Epoch(binary.BigEndian.Uint64(op.Key[33:]))
		x.w.holds(Ballots, n, epoch+1 != n.lost || aweigh.ScopeID(op.Key[1:33]) != x.w.id,
			"signs in epoch %d, in which it found that its record was lost (P9)", epoch)
	}
}
