// Package fsck reads a node's store and checks it against its network's genesis. It needs no running node.
package fsck

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/internal/must"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
)

var (
	// ErrForged means that a store does not hold what its network made final.
	ErrForged = errors.New("node: the store differs from the network's final blocks")
	// ErrUnvouched means that a store does not hold what it takes to check its newest
	// block: it was written by an older program, or the block replaced too much.
	ErrUnvouched = errors.New("node: the newest block cannot be checked")
)

// Progress says how far an audit is.
type Progress struct {
	Scope   aweigh.ScopeID
	What    string // "blocks", "records"
	Done    int64
	Of      int64 // 0 where it is not known
	Records int64 // in all
	Bytes   int64 // of them
}

// Report is what an audit found to be so.
type Report struct {
	Genesis scope.Genesis
	Scopes  []ScopeReport // the root scope first
	Records int64
	Bytes   int64
}

// ScopeReport is one scope of a store.
type ScopeReport struct {
	Scope   aweigh.ScopeID
	Prefix  string
	Head    scope.Head // checked, records and all
	Epoch   aweigh.Epoch
	Roster  aweigh.Hash // of the newest epoch that the store proves
	Blocks  int64       // whose contents are there
	Vacant  bool        // its state is not here yet; it is fetched when the node starts
	Pending bool        // a snapshot of it is being fetched
}

// Store reads all of a store and checks it against the genesis and nothing else: rosters
// by their handovers, blocks by certificates, the state of each scope by the header that
// claims it, and each other record of the node by what it follows from or by its
// signature. It changes nothing. The store must not change meanwhile. tell, which may be
// nil, hears how far it is, and ends the audit by an error. Errors wrap ErrForged or
// ErrUnvouched, or are those of tell and of the store.
func Store(r kv.Reader, g scope.Genesis, tell func(Progress) error) (*Report, error) {
	return audit(&auditor{r: r, tell: tell}, g)
}

// Network is Store for a store of a network, of all scopes, by its verifier and under its bounds.
func Network(n *machine.Network, r kv.Reader) (*Report, error) {
	return audit(&auditor{r: r, bounds: n.Bounds(), verify: n.Verifier()}, n.Genesis())
}

func audit(a *auditor, g scope.Genesis) (rep *Report, err error) {
	r := a.r
	defer func() {
		if p := recover(); p != nil {
			v, ok := p.(must.Violation)
			if !ok {
				panic(p)
			}
			rep, err = nil, forged("%w", v)
		}
	}()
	if a.tell == nil {
		a.tell = func(Progress) error { return nil }
	}
	a.known = make(map[aweigh.ScopeID]*audited)
	a.report.Genesis = g
	if raw, ok, err := r.Get(machine.KeyGenesis()); err != nil {
		return nil, err
	} else if !ok || !bytes.Equal(raw, g.Encode()) {
		return nil, forged("it belongs to another network than %s", g.Hash().Short())
	}
	if err := a.scope(g); err != nil {
		return nil, err
	}
	if err := a.checkOthers(); err != nil {
		return nil, err
	}
	return &a.report, nil
}

func forged(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrForged, fmt.Errorf(format, args...))
}

// auditor is one audit.
type auditor struct {
	r      kv.Reader
	tell   func(Progress) error
	bounds *scope.Bounds  // nil: the defaults
	verify votes.Verifier // nil: directly
	at     Progress
	report Report
	known  map[aweigh.ScopeID]*audited
}

// audited is what is known of a scope whose chain was checked.
type audited struct {
	genesis  scope.Genesis
	state    *scope.State // nil if vacant
	epoch    *scope.Epoch // newest
	keyring  *votes.Keyring
	counts   map[byte]int64 // records of the chain that were checked, by letter
	snapshot bool           // blocks are missing since a snapshot was installed
}

// progress counts records.
func (a *auditor) progress(what string, records, size, done, of int64) error {
	a.at.What, a.at.Done, a.at.Of = what, done, of
	a.at.Records += records
	a.at.Bytes += size
	return a.tell(a.at)
}

// scope checks the chain and the state of a scope, and of those below that are here.
func (a *auditor) scope(g scope.Genesis) error {
	id := g.Hash()
	a.at.Scope = id
	found := ScopeReport{Scope: id, Prefix: string(g.Prefix())}
	x := &audited{genesis: g, counts: make(map[byte]int64)}
	var err error
	if x.epoch, err = g.Epoch(); err != nil {
		return forged("the genesis of scope %s: %w", id.Short(), err)
	}
	a.known[id] = x
	if _, ok, err := a.r.Get(machine.KeyInstalling(id)); err != nil {
		return err
	} else if ok {
		return fmt.Errorf("%w: a snapshot of scope %s was being installed; start the node once to finish that", ErrUnvouched, id.Short())
	}
	if _, found.Pending, err = a.r.Get(machine.KeyJob(id)); err != nil {
		return err
	}
	if _, found.Vacant, err = a.r.Get(machine.KeyVacant(id)); err != nil {
		return err
	}
	if found.Vacant {
		a.report.Scopes = append(a.report.Scopes, found)
		return nil
	}
	if x.state, err = scope.Open(a.r, id); err != nil {
		return forged("%w", err)
	}
	head, err := a.chain(id, x)
	if err != nil {
		return fmt.Errorf("scope %s: %w", id.Short(), err)
	}
	if err := a.state(id, x, head); err != nil {
		return fmt.Errorf("scope %s: %w", id.Short(), err)
	}
	if err := a.handovers(id, x, ^aweigh.Height(0)); err != nil { // of epochs to be caught up with
		return fmt.Errorf("scope %s: %w", id.Short(), err)
	}
	found.Head, found.Epoch, found.Roster, found.Blocks = x.state.Head(), x.epoch.Number, x.epoch.Roster.Hash(), x.counts['b']
	a.report.Scopes = append(a.report.Scopes, found)
	a.report.Records, a.report.Bytes = a.at.Records, a.at.Bytes
	begun, err := x.state.Begin()
	if err != nil {
		return forged("%w", err)
	}
	for _, d := range begun.Given() {
		_, child, ok, err := begun.Delegated(d.Prefix)
		if err != nil || !ok {
			return forged("the delegation of %q: %w", d.Prefix, errors.Join(err, scope.ErrCorrupt))
		}
		if child.Hash() != d.Child {
			return forged("the delegation of %q is to another scope than its genesis", d.Prefix)
		}
		if err := a.below(child); err != nil {
			return err
		}
	}
	home, err := begun.Folded() // which are the history of keys that the scope has again
	if err != nil {
		return forged("%w", err)
	}
	for _, child := range home {
		if err := a.below(child); err != nil {
			return err
		}
	}
	islands, err := machine.StoredIslands(a.r, id)
	if errors.Is(err, scope.ErrInvalid) {
		err = forged("%w", err)
	}
	for i := range islands {
		if err == nil {
			err = a.island(id, islands[i])
		}
	}
	return err
}

// below checks a scope that was delegated to, as far as it is here.
func (a *auditor) below(g scope.Genesis) error {
	_, _, meta := scope.Clear(g.Hash())
	if _, here, err := a.r.Get(meta); err != nil {
		return err
	} else if !here {
		return a.elsewhere(g)
	}
	return a.scope(g)
}

// island checks an island of a scope.
func (a *auditor) island(of aweigh.ScopeID, g scope.Genesis) error {
	rest, _, err := machine.StoredRest(a.r, of, g.Hash())
	switch {
	case err != nil:
		return forged("the rest of island %s: %w", g.Hash().Short(), err)
	case rest.Dropped:
		return fmt.Errorf("%w: the records of island %s were being deleted; start the node once to finish that", ErrUnvouched, g.Hash().Short())
	}
	return a.scope(g)
}

// elsewhere checks what a store has of a scope that the node does not hold: handovers.
func (a *auditor) elsewhere(g scope.Genesis) error {
	x := &audited{genesis: g, counts: make(map[byte]int64)}
	var err error
	if x.epoch, err = g.Epoch(); err != nil {
		return forged("a genesis: %w", err)
	}
	a.known[g.Hash()] = x
	return a.handovers(g.Hash(), x, ^aweigh.Height(0))
}

// handovers follows the rosters up to the end of an epoch at a height.
func (a *auditor) handovers(id aweigh.ScopeID, x *audited, to aweigh.Height) error {
	h := machine.History{Reader: a.r, Scope: id}
	for {
		hands, err := h.Handovers(x.epoch.Start, machine.HandoversAtOnce)
		if err != nil {
			return forged("a handover: %w", err)
		}
		for _, hand := range hands {
			if hand.Final.Header.Height > to {
				return nil
			}
			if err := a.handover(x, hand); err != nil {
				return err
			}
		}
		if len(hands) < machine.HandoversAtOnce {
			return nil
		}
	}
}

func (a *auditor) handover(x *audited, hand scope.Handover) error {
	next, err := x.epoch.Follow(hand)
	if err != nil {
		return forged("the end of epoch %d: %w", x.epoch.Number, err)
	}
	id := x.genesis.Hash()
	if raw, ok, err := a.r.Get(machine.KeyHandover(id, hand.Final.Header.Height)); err != nil {
		return err
	} else if !ok || !bytes.Equal(raw, canon.Encode(hand)) {
		return forged("the end of epoch %d stands at another height", x.epoch.Number)
	}
	x.epoch, x.keyring = next, nil
	x.counts['e']++
	return nil
}

// state checks a scope's state against what claims it. before is the header of the
// newest block's parent, if it is here.
func (a *auditor) state(id aweigh.ScopeID, x *audited, head heads) error {
	audit := scope.Audit{Reader: a.r, Genesis: &x.genesis, Bounds: a.bounds, Tell: func(records, size int) error {
		return a.progress("records", int64(records), int64(size), a.at.Done+int64(records), 0)
	}}
	a.at.Done = 0
	var err error
	if head.block == nil {
		err = audit.Founded()
		if raw, ok, _ := a.r.Get(machine.KeyVouched(id)); ok {
			err = errors.Join(err, forged("something vouches for block 0: %x", raw))
		}
	} else {
		var v machine.Vouched
		raw, ok, got := a.r.Get(machine.KeyVouched(id))
		if got != nil {
			return got
		}
		if !ok {
			return fmt.Errorf("%w: block %d was written by a program that kept nothing for it; start the node, and let it take part in one more block", ErrUnvouched, head.block.Header.Height)
		}
		if err := canon.Decode(raw, &v); err != nil || (v.Undo == nil) == (v.Next == nil) {
			return forged("what vouches for block %d cannot be read (%v)", head.block.Header.Height, err)
		}
		switch {
		case v.Next != nil:
			if err := a.child(x, v.Next); err != nil {
				return err
			}
			err = audit.Claimed(head.block.Header, v.Next.Header)
		case v.Undo.Short && v.Undo.Block == head.block.Hash():
			return fmt.Errorf("%w: block %d replaced more than is kept; wait for one more block", ErrUnvouched, head.block.Header.Height)
		default:
			err = audit.Newest(head.parent, head.block, *v.Undo)
		}
	}
	if errors.Is(err, scope.ErrInvalid) || errors.Is(err, scope.ErrCorrupt) {
		err = forged("the state: %w", err)
	}
	return err
}

// child verifies the finality of the newest block's child.
func (a *auditor) child(x *audited, f *scope.Finality) error {
	k, err := x.keys(a.verify)
	if err != nil {
		return err
	}
	if err := f.Check(k); err != nil {
		return forged("the child of the newest block: %w", err)
	}
	return nil
}

func (x *audited) keys(verify votes.Verifier) (k *votes.Keyring, err error) {
	if x.keyring == nil {
		if x.keyring, err = x.epoch.Keyring(); err != nil {
			return nil, forged("the keys of epoch %d: %w", x.epoch.Number, err)
		}
		if verify != nil {
			x.keyring = x.keyring.With(verify)
		}
	}
	return x.keyring, nil
}

// height reads one at the end of a key.
func heightAt(key []byte) (aweigh.Height, bool) {
	if len(key) != 1+len(aweigh.ScopeID{})+1+8 {
		return 0, false
	}
	return aweigh.Height(binary.BigEndian.Uint64(key[len(key)-8:])), true
}
