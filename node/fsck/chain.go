package fsck

import (
	"bytes"
	"errors"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
)

// heads are the newest final block of a scope and its parent's header; nil where there
// is none.
type heads struct {
	block  *scope.Block
	parent *scope.Header
}

// walk goes along the final blocks of a scope, oldest first. A block is proven by a
// certificate of its own, or by being the parent of one that is.
type walk struct {
	*auditor
	x        *audited
	id       aweigh.ScopeID
	history  machine.History
	dropped  aweigh.Height // from there on no content was dropped
	oldest   aweigh.Height // from there on all is here
	head     scope.Head
	last     *scope.Block
	lastAt   aweigh.Height
	seen     aweigh.Height     // of the newest record
	unproven bool              // last is
	place    machine.BlockStub // of the newest
	heads
}

// chain checks all final blocks of a scope, and gives the newest.
func (a *auditor) chain(id aweigh.ScopeID, x *audited) (heads, error) {
	w := &walk{auditor: a, x: x, id: id, history: machine.History{Reader: a.r, Scope: id}, head: x.state.Head()}
	var err error
	if w.dropped, err = a.mark(x, machine.KeyDropped(id), 'd'); err != nil {
		return w.heads, err
	}
	if w.oldest, err = a.mark(x, machine.KeyOldest(id), 'o'); err != nil {
		return w.heads, err
	}
	x.snapshot = w.oldest > 0
	if w.dropped > w.head.Height || w.oldest > w.head.Height {
		return w.heads, forged("it says that blocks are missing up to %d, and ends at %d", max(w.dropped, w.oldest), w.head.Height)
	}
	all := machine.Record(id, 'h')
	var bad error
	err = a.r.Scan(all, kv.PrefixEnd(all), false, func(k, raw []byte) bool {
		at, ok := heightAt(k)
		var p machine.BlockStub
		if err := canon.Decode(raw, &p); err != nil || !ok || at == 0 {
			bad = forged("the record of the block at height %d: %v", at, err)
			return false
		}
		bad = w.step(at, p)
		return bad == nil
	})
	if err == nil {
		err = bad
	}
	if err == nil {
		err = w.finish()
	}
	return w.heads, err
}

// mark reads the record of a height.
func (a *auditor) mark(x *audited, key []byte, letter byte) (aweigh.Height, error) {
	raw, ok, err := a.r.Get(key)
	if err != nil || !ok {
		return 0, err
	}
	if len(raw) != 8 {
		return 0, forged("mark %q has %d bytes", letter, len(raw))
	}
	x.counts[letter]++
	return machine.History{Reader: a.r}.Mark(key)
}

// step takes the final block at a height.
func (w *walk) step(at aweigh.Height, p machine.BlockStub) error {
	w.x.counts['h']++
	w.place = p
	if at > w.head.Height {
		return forged("a final block at height %d, above the newest, %d", at, w.head.Height)
	}
	raw, here, err := w.r.Get(machine.KeyBlock(w.id, p.Block))
	if err != nil {
		return err
	}
	if err := w.progress("blocks", 1, int64(len(raw)), int64(at), int64(w.head.Height)); err != nil {
		return err
	}
	gap := at != w.seen+1
	w.seen = at
	if gap || !here {
		if err := w.pause(at, here); err != nil || !here {
			return err
		}
	}
	b, err := scope.DecodeBlock(raw, scope.MostLimits(), nil)
	if err != nil {
		return forged("block %d: %w", at, err)
	}
	h := &b.Header
	switch {
	case b.Hash() != p.Block || h.Height != at || h.Scope != w.id || h.Time != p.Time:
		return forged("block %d is on record as another", at)
	case !p.Cited && (len(b.Proofs) > 0 || b.Revocation != nil):
		return forged("block %d is on record as one that no proof needs", at)
	case w.last != nil && h.Parent != w.last.Hash():
		return forged("block %d does not follow block %d", at, w.lastAt)
	}
	w.x.counts['b']++
	if h.Epoch > w.x.epoch.Number {
		if err := w.handovers(w.id, w.x, at-1); err != nil {
			return err
		}
	}
	if h.Epoch != w.x.epoch.Number {
		return forged("block %d is of epoch %d, where it is %d", at, h.Epoch, w.x.epoch.Number)
	}
	if at > 1 && w.last != nil {
		w.parent = &w.last.Header
	}
	w.last, w.lastAt, w.unproven = b, at, true
	return w.prove(at, b, p)
}

// prove looks for what makes a block final by itself.
func (w *walk) prove(at aweigh.Height, b *scope.Block, p machine.BlockStub) error {
	k, err := w.x.keys(w.verify)
	if err != nil {
		return err
	}
	cert, err := w.history.Certificate(at)
	if err != nil {
		return forged("the certificate of block %d: %w", at, err)
	}
	if !cert.Subject.Block.IsZero() || len(cert.Signatures) > 0 {
		if err := (scope.Finality{Header: b.Header, Certificate: cert}).Check(k); err != nil {
			return forged("the certificate of block %d: %w", at, err)
		}
		w.x.counts['f']++
		w.unproven = false
	}
	raw, ok, err := w.r.Get(machine.KeyCited(w.id, at))
	if err != nil {
		return err
	}
	if ok {
		var f scope.Finality
		if err := canon.Decode(raw, &f); err != nil || f.Header != b.Header {
			return forged("the finality of block %d is that of another (%v)", at, err)
		}
		if err := f.Check(k); err != nil {
			return forged("the finality of block %d: %w", at, err)
		}
		w.x.counts['v']++
		w.unproven = false
	}
	if b.Header.Next.IsZero() {
		return nil
	}
	hand, err := w.history.Handover(at)
	if err != nil || hand.Final.Header != b.Header {
		return forged("block %d ends an epoch, and its handover is not here (%v)", at, err)
	}
	w.unproven = false
	return w.handover(w.x, hand)
}

// pause is where blocks are missing below a height: what is below must be proven by
// itself, and must be allowed to be missing.
func (w *walk) pause(at aweigh.Height, here bool) error {
	missing := at
	if here {
		missing = at - 1
	}
	switch {
	case w.unproven:
		return forged("nothing proves that block %d is final", w.lastAt)
	case missing >= max(w.dropped, w.oldest):
		return forged("block %d is missing", missing)
	}
	w.last, w.parent = nil, nil
	return nil
}

// finish holds the newest block against the head.
func (w *walk) finish() error {
	switch {
	case w.head.Height == 0:
		if w.last != nil {
			return forged("blocks where there are none")
		}
	case w.last == nil || w.lastAt != w.head.Height || w.last.Hash() != w.head.Block:
		return forged("the newest block, %d, is not here", w.head.Height)
	case w.unproven:
		return forged("nothing proves that block %d is final", w.lastAt)
	case w.place.Revision != w.head.Revision && w.place.Revision != 0:
		return forged("block %d is on record with revision %d, and has %d", w.lastAt, w.place.Revision, w.head.Revision)
	default:
		w.block = w.last
	}
	return w.open()
}

// open checks the certificates of views that are not final yet.
func (w *walk) open() error {
	k, err := w.x.keys(w.verify)
	if err != nil {
		return err
	}
	all := machine.Record(w.id, 'c')
	var bad error
	err = w.r.Scan(all, kv.PrefixEnd(all), false, func(key, raw []byte) bool {
		w.x.counts['c']++
		if v, ok := machine.GroundOf(w.id, k.Rules().Mode, key); ok {
			bad = ground(k, v, raw)
			return bad == nil
		}
		var c quorum.Certificate
		if bad = canon.Decode(raw, &c); bad == nil && !bytes.Equal(key, machine.KeyCertificate(w.id, c.Subject)) {
			bad = forged("of another view")
		}
		if bad == nil {
			bad = k.CheckCertificate(c)
		}
		if bad != nil {
			bad = forged("a certificate of an open view: %w", bad)
		}
		return bad == nil
	})
	if err == nil {
		err = bad
	}
	return err
}

// ground checks the nullify ballots of an open view, in mode fast.
func ground(k *votes.Keyring, v aweigh.View, raw []byte) error {
	var all []machine.OfferedVote
	bad := canon.Decode(raw, &all)
	for _, x := range all {
		if bad == nil && x.Subject.View != v {
			bad = errors.New("of another view")
		}
		if bad == nil {
			bad = k.CheckVote(quorum.Vote{Subject: x.Subject, Signature: x.Signature})
		}
	}
	if bad != nil {
		return forged("ballots of an open view: %w", bad)
	}
	return nil
}
