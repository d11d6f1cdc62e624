package node

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/internal/must"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
)

// Records of the node, beside those of scope ('s') and guard ('g'). All start
// with 'n', the scope, and a letter:
//
//	b<block>         content of a block, final or notarized by this anchor
//	h<height>        pillar of the final block at a height
//	f<height>        finalization certificate of that block, where it has its own
//	v<height>        scope.Finality of that block, if it is cited and those above were dropped
//	d                height of the block from which on none was dropped
//	c<view><kind>    certificate of a view of this epoch that is not final yet
//	e<height>        scope.Handover of the block at a height, which ends an epoch
//	l<ballot>        a ballot on a motion that closed before a block had it
//	m<motion>        scope.Minutes of a motion that the state has forgotten
//	p<bundle>        a bundle of this node's clients that waits for a quorum
//	u                vouched: by what the newest state can be checked
//	t<anchor><height><n>  trust.Change of an anchor that the block at a height made
func record(id aweigh.ScopeID, letter byte, rest ...byte) []byte {
	k := make([]byte, 0, 1+len(id)+1+len(rest))
	k = append(k, 'n')
	k = append(k, id[:]...)
	k = append(k, letter)
	return append(k, rest...)
}

func keyGenesis() []byte { return []byte("G") }

func keyBlock(id aweigh.ScopeID, h aweigh.Hash) []byte { return record(id, 'b', h[:]...) }

func keyHeight(id aweigh.ScopeID, h aweigh.Height) []byte {
	return record(id, 'h', binary.BigEndian.AppendUint64(nil, uint64(h))...)
}

func keyFinality(id aweigh.ScopeID, h aweigh.Height) []byte {
	return record(id, 'f', binary.BigEndian.AppendUint64(nil, uint64(h))...)
}

// keyCited is where the finality of a block stands whose neighbours were dropped.
func keyCited(id aweigh.ScopeID, h aweigh.Height) []byte {
	return record(id, 'v', binary.BigEndian.AppendUint64(nil, uint64(h))...)
}

func keyDropped(id aweigh.ScopeID) []byte { return record(id, 'd') }

func keyCertificate(id aweigh.ScopeID, s quorum.Subject) []byte {
	return record(id, 'c', append(binary.BigEndian.AppendUint64(nil, uint64(s.View)), byte(s.Kind))...)
}

func keyPending(id aweigh.ScopeID, bundle aweigh.Hash) []byte { return record(id, 'p', bundle[:]...) }
func keyLate(id aweigh.ScopeID, ballot aweigh.Hash) []byte    { return record(id, 'l', ballot[:]...) }

func keyHandover(id aweigh.ScopeID, h aweigh.Height) []byte {
	return record(id, 'e', binary.BigEndian.AppendUint64(nil, uint64(h))...)
}

// History reads the final blocks of one scope from a store.
type History struct {
	Reader kv.Reader
	Scope  aweigh.ScopeID
}

// ErrNoBlock is returned for heights that are not final here.
var ErrNoBlock = fmt.Errorf("node: no such final block")

// pillar is what stays of the final block at a height.
func (h History) pillar(at aweigh.Height) (p pillar, err error) {
	raw, ok, err := h.Reader.Get(keyHeight(h.Scope, at))
	if err != nil {
		return p, err
	}
	if ok {
		return p, canon.Decode(raw, &p)
	}
	if oldest, err := h.mark(keyOldest(h.Scope)); err == nil && at < oldest {
		return p, fmt.Errorf("%w: height %d; this node caught up by a snapshot and holds all blocks from height %d on: ask another node", ErrNoBlock, at, oldest)
	}
	return p, fmt.Errorf("%w: height %d", ErrNoBlock, at)
}

// mark is a height on record, 0 if there is none.
func (h History) mark(key []byte) (aweigh.Height, error) {
	raw, ok, err := h.Reader.Get(key)
	if err != nil || !ok || len(raw) != 8 {
		return 0, err
	}
	return aweigh.Height(binary.BigEndian.Uint64(raw)), nil
}

// dropped is the height of the block from which on none was dropped.
func (h History) dropped() (aweigh.Height, error) { return h.mark(keyDropped(h.Scope)) }

// Raw is the encoding of the final block at a height.
func (h History) Raw(at aweigh.Height) ([]byte, error) {
	p, err := h.pillar(at)
	if err != nil {
		return nil, err
	}
	raw, ok, err := h.Reader.Get(keyBlock(h.Scope, p.Block))
	if err != nil || ok {
		return raw, err
	}
	if kept, err := h.dropped(); err == nil && at < kept {
		return nil, fmt.Errorf("%w: height %d; this node dropped what was compacted and holds all blocks from height %d on: ask a node that runs without --prune", ErrNoBlock, at, kept)
	}
	return nil, fmt.Errorf("%w: the content of height %d is missing", ErrNoBlock, at)
}

// Block is the final block at a height.
func (h History) Block(at aweigh.Height) (*scope.Block, error) {
	raw, err := h.Raw(at)
	if err != nil {
		return nil, err
	}
	return scope.DecodeBlock(raw, scope.MostLimits(), nil)
}

// Certificate is the finalization of the block at a height, zero if it has none
// of its own.
func (h History) Certificate(at aweigh.Height) (c quorum.Certificate, err error) {
	raw, ok, err := h.Reader.Get(keyFinality(h.Scope, at))
	if err != nil || !ok {
		return c, err
	}
	return c, canon.Decode(raw, &c)
}

// Finality is what makes the block at a height final: its own certificate, or
// that of its nearest descendant that has one.
func (h History) Finality(at aweigh.Height) (f scope.Finality, err error) {
	if f, err = h.finality(at); !errors.Is(err, ErrNoBlock) {
		return f, err
	}
	raw, ok, got := h.Reader.Get(keyCited(h.Scope, at))
	if got != nil || !ok {
		return f, errors.Join(err, got)
	}
	f = scope.Finality{}
	return f, canon.Decode(raw, &f)
}

func (h History) finality(at aweigh.Height) (f scope.Finality, err error) {
	for ; ; at++ {
		b, err := h.Block(at)
		if err != nil {
			return f, err
		}
		if f.Header.Format == 0 {
			f.Header = b.Header
		} else {
			f.Descendants = append(f.Descendants, b.Header)
		}
		if !b.Header.Next.IsZero() { // what follows it is of another epoch
			hand, err := h.Handover(at)
			f.Descendants = append(f.Descendants, hand.Final.Descendants...)
			f.Certificate = hand.Final.Certificate
			return f, err
		}
		if f.Certificate, err = h.Certificate(at); err != nil || !f.Certificate.IsZero() {
			return f, err
		}
	}
}

// errUncovered means that no final block after the change can be proven yet.
var errUncovered = errors.New("node: no block covers the change yet")

// cover is the finality of the newest block up to a height, and above another,
// that can be proven final.
func (h History) cover(newest, above aweigh.Height) (scope.Finality, error) {
	for at := newest; at > above; at-- {
		f, err := h.Finality(at)
		if !errors.Is(err, ErrNoBlock) {
			return f, err
		}
	}
	return scope.Finality{}, errUncovered
}

// Handover is what the block at a height hands over, which ends an epoch. Errors
// wrap ErrNoBlock if it ends none here.
func (h History) Handover(at aweigh.Height) (hand scope.Handover, err error) {
	raw, ok, err := h.Reader.Get(keyHandover(h.Scope, at))
	if err == nil && !ok {
		err = fmt.Errorf("%w: the end of an epoch at height %d", ErrNoBlock, at)
	}
	if err != nil {
		return hand, err
	}
	return hand, canon.Decode(raw, &hand)
}

// EpochEnd is the height of the last block of the epoch that the block at a
// height belongs to, 0 if that epoch goes on.
func (h History) EpochEnd(at aweigh.Height) (end aweigh.Height, err error) {
	all := record(h.Scope, 'e')
	err = h.Reader.Scan(keyHandover(h.Scope, at), kv.PrefixEnd(all), false, func(k, _ []byte) bool {
		end = aweigh.Height(binary.BigEndian.Uint64(k[len(all):]))
		return false
	})
	return end, err
}

// Handovers are the proofs of the epochs that begin above a height, in order, at
// most as many as asked for.
func (h History) Handovers(above aweigh.Height, most int) (all []scope.Handover, err error) {
	var bad error
	err = h.Reader.Scan(keyHandover(h.Scope, above+1), kv.PrefixEnd(record(h.Scope, 'e')), false, func(_, raw []byte) bool {
		if len(all) >= most {
			return false
		}
		var hand scope.Handover
		bad = canon.Decode(raw, &hand)
		all = append(all, hand)
		return bad == nil
	})
	return all, errors.Join(err, bad)
}

// recordTrust keeps what a final block did to the anchors' trust, for those who
// ask why.
func (m *Machine) recordTrust(k *candidate) {
	for i, c := range k.result.Trust {
		a := c.Evidence.Anchor
		key := record(m.id, 't', a[:]...)
		key = binary.BigEndian.AppendUint64(key, uint64(k.block.Header.Height))
		m.write(kv.Set(binary.BigEndian.AppendUint16(key, uint16(i)), canon.Encode(c)))
	}
}

func keyMinutes(id aweigh.ScopeID, m votes.MotionID) []byte { return record(id, 'm', m[:]...) }

// archive keeps what a final block makes the state forget of motions, for proofs of
// what they changed.
func (m *Machine) archive(before *scope.State, k *candidate) {
	for _, id := range k.result.Motions {
		mo, _, err := k.state.Motion(id)
		must.OK(err, "reading a motion")
		if mo != nil {
			continue
		}
		minutes, err := before.Minutes(id)
		must.OK(err, "reading a motion")
		if minutes != nil {
			m.write(kv.Set(keyMinutes(m.id, id), minutes.Encode()))
		}
	}
}

// Minutes are those of a motion that the state has forgotten, as of then; nil for
// what is none.
func (h History) Minutes(id votes.MotionID) (*scope.Minutes, error) {
	raw, ok, err := h.Reader.Get(keyMinutes(h.Scope, id))
	if err != nil || !ok {
		return nil, err
	}
	return scope.DecodeMinutes(raw)
}
