package node

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/lineage"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
)

// Which scope decides about a key is the longest prefix's to say, scope by scope from
// the root (resolution, see docs/scopes.md). A scope may delegate a prefix while a
// request about it is under way: it is then refused there, with nothing done, and
// goes to the child.

// ErrSpans is wrapped where a request is about keys of several scopes.
var ErrSpans = errors.New("node: the keys belong to several scopes, and each decides for itself; ask for those of one at a time")

// ErrNoScope is wrapped where a scope is asked for that this node does not know.
var ErrNoScope = errors.New("node: no such scope here")

// decider is a scope that decides about some keys: this node holds it, or it is foreign.
type decider struct {
	*Part
	foreign *foreign
}

func (d decider) delegations() []scope.Delegation {
	if d.foreign != nil {
		return d.foreign.delegations()
	}
	return d.Delegations()
}

// time is from when on this node dates what is for the scope. The revisions of a scope that it does not
// hold tell its time.
func (d decider) time() aweigh.Instant {
	if d.foreign != nil {
		return d.foreign.time()
	}
	return d.Part.time()
}

func (d decider) name() string {
	if d.foreign != nil {
		return fmt.Sprintf("%q", d.foreign.genesis.Prefix())
	}
	return d.Part.name()
}

func (d decider) genesis() scope.Genesis {
	if d.foreign != nil {
		return d.foreign.genesis
	}
	return *d.Part.genesis
}

// held is the part in it. Errors wrap ErrNotHeld.
func (d decider) held() (*Part, error) {
	if d.foreign != nil {
		return nil, d.foreign.notHeld()
	}
	return d.Part, nil
}

// proposer takes what a scope is to decide on.
type proposer interface {
	propose(ctx context.Context, class scope.Class, content []byte, once Once) (Receipt, error)
}

func (d decider) proposer() proposer {
	if d.foreign != nil {
		return d.foreign
	}
	return d.Part
}

// governs finds the scope that decides about all keys of [key, end), in the sense of
// scope.Op.
func (n *Node) governs(ctx context.Context, key, end []byte) (at decider, err error) {
	at.Part = n.Part
	for {
		touched := scope.Touching(at.delegations(), key, end)
		if len(touched) == 0 {
			return at, nil
		}
		if d := touched[0]; !scope.Covers(d.Prefix, key, end) {
			return at, fmt.Errorf("%w: %q has a scope of its own", ErrSpans, d.Prefix)
		}
		if at, err = n.awaitDecider(ctx, touched[0]); err != nil {
			return at, err
		}
	}
}

// Delegations are the prefixes that the part's scope has delegated, in order.
func (n *Part) Delegations() []scope.Delegation { return *n.given.Load() }

// awaitDecider is a scope that was delegated to, which may be about to be opened.
func (n *Node) awaitDecider(ctx context.Context, d scope.Delegation) (decider, error) {
	for {
		n.mu.RLock()
		p, opened, broken := n.parts[placeOf(d.Child)], n.opened, n.broken[d.Child]
		n.mu.RUnlock()
		if p != nil || broken != nil {
			return decider{Part: p}, broken
		}
		if f := n.foreign(d.Child); f != nil {
			return decider{foreign: f}, nil
		}
		select {
		case <-opened:
		case <-ctx.Done():
			return decider{}, ctx.Err()
		case <-n.runner.replies.done:
			return decider{}, n.runner.replies.stopped
		}
	}
}

// on has f ask the part that decides about some ranges of keys, and the child's if
// the keys went there meanwhile. Errors wrap ErrNotHeld where this node has none.
func (n *Node) on(ctx context.Context, ranges Ranges, f func(*Part) error) error {
	return n.anywhere(ctx, ranges, func(d decider) error {
		p, err := d.held()
		if err != nil {
			return err
		}
		return f(p)
	})
}

// Holds is whether this node holds the scope that decides about some ranges of keys.
func (n *Node) Holds(ctx context.Context, ranges Ranges) (bool, error) {
	err := n.on(ctx, ranges, func(*Part) error { return nil })
	if errors.Is(err, ErrNotHeld) {
		return false, nil
	}
	return err == nil, err
}

// anywhere is on for those who ask scopes that are foreign as well.
func (n *Node) anywhere(ctx context.Context, ranges Ranges, f func(decider) error) error {
	ctx, cancel := n.deadline(ctx)
	defer cancel()
	again := time.Millisecond
	for {
		var at decider
		var err error
		ranges(func(key, end []byte) bool {
			var q decider
			if q, err = n.governs(ctx, key, end); err == nil && at != (decider{}) && at != q {
				err = fmt.Errorf("%w: %s and %s", ErrSpans, at.name(), q.name())
			}
			at = q
			return err == nil
		})
		if err != nil {
			return err
		}
		if at == (decider{}) {
			at.Part = n.Part
		}
		if err = f(at); !errors.Is(err, scope.ErrElsewhere) {
			return err
		}
		if at.foreign != nil { // it has delegated some of them
			if err := at.foreign.learn(ctx, ranges); err != nil {
				return err
			}
			again = time.Millisecond
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(again): // it is known at once where the keys went, as a rule
		}
		again = min(2*again, time.Second)
	}
}

// Ranges visits ranges of keys, in the sense of scope.Op, until visit returns false,
// as scope.Txn.Ranges does.
type Ranges func(visit func(key, end []byte) bool) bool

// Keys are single keys; empty ones do not count.
func Keys(keys ...[]byte) Ranges {
	return func(visit func(key, end []byte) bool) bool {
		for _, k := range keys {
			if len(k) > 0 && !visit(k, nil) {
				return false
			}
		}
		return true
	}
}

// Between is the range [key, end).
func Between(key, end []byte) Ranges {
	return func(visit func(key, end []byte) bool) bool { return visit(key, end) }
}

// taken is a receipt, or that another scope decides.
func taken(r Receipt, err error) error {
	if err == nil && r.Code == scope.Failed {
		if why := scope.Failure(r.Reason); errors.Is(why, scope.ErrElsewhere) {
			return why
		}
	}
	return err
}

// Txn proposes a transaction in this node's name, in the scope that decides about its
// keys, and waits until it is final. Errors wrap ErrSpans if there are several.
func (n *Node) Txn(ctx context.Context, t scope.Txn, once Once) (Receipt, error) {
	return n.route(ctx, t.Ranges, scope.Write, canon.Encode(t), once, attaches(&t))
}

// Naming proposes a change of names in the scope that decides about them.
func (n *Node) Naming(ctx context.Context, c scope.Naming, once Once) (Receipt, error) {
	return n.route(ctx, Keys(c.Key, c.To, c.From), scope.Name, canon.Encode(c), once, nil)
}

// route proposes something, with the leases that it names, where some keys are decided about. What was done
// before they went to another scope is not done there once more.
func (n *Node) route(ctx context.Context, keys Ranges, class scope.Class, content []byte, once Once, leases []int64) (r Receipt, err error) {
	repeated := once.Nonce != nil
	once.draw()
	err = n.anywhere(ctx, keys, func(at decider) error {
		undated := once
		once := once.dated(at.time())
		if repeated {
			before, known, err := n.before(ctx, at, class, content, once)
			if known || err != nil {
				r = before
				return err
			}
		}
		r, err = n.attached(ctx, at.proposer(), class, content, once, leases)
		if once.ValidUntil != undated.ValidUntil && errors.As(err, new(*ExpiredError)) { // the scope's time is known better now
			r, err = n.attached(ctx, at.proposer(), class, content, undated.dated(at.time()), leases)
		}
		return taken(r, err)
	})
	return r, err
}

// before is what became of a request in a scope above, if it was done there: all that
// was ordered there about keys of this scope is in this node's state, or in that of enough
// anchors of one that it does not hold.
func (n *Node) before(ctx context.Context, at decider, class scope.Class, content []byte, once Once) (r Receipt, known bool, err error) {
	again := once
	again.Nonce = nonceAgain(once.Nonce)
	for d := at.genesis().Descent; d != nil; {
		f, p := n.foreign(d.Parent), n.part(d.Parent)
		switch {
		case f != nil:
			d = f.genesis.Descent
		case p != nil && !p.vacant.Load():
			d = p.genesis.Descent
		default:
			return r, false, nil
		}
		for _, once := range []Once{once, again} {
			var was Receipt
			var ok bool
			if f != nil {
				was, ok, err = f.outcome(ctx, scope.ID(f.mutation(class, content, once).Encode()))
			} else {
				was, ok, err = p.outcome(scope.ID(p.mutation(class, content, once).Encode()))
			}
			if err != nil {
				return r, false, err
			}
			if ok && was.Code == scope.Applied {
				was.Code = scope.Duplicate
				return was, true, nil
			}
		}
	}
	return r, false, nil
}

// outcome is what became of a mutation, if that is on record here.
func (n *Part) outcome(id aweigh.Hash) (r Receipt, known bool, err error) {
	s, err := n.views.open()
	if err != nil {
		return r, false, err
	}
	was, known, err := s.Outcome(id)
	r.Outcome = scope.Outcome{Mutation: id, Code: was.Code, Reason: was.Reason, Revision: was.Revision, Succeeded: was.Succeeded}
	r.Height, r.Scope = was.Height, n.id
	return r, known, errors.Join(err, n.views.release(s))
}

// Submit takes a bundle that its author signed, for the scope that it names, and
// waits until all of its mutations are final. The receipts are in the bundle's order.
func (n *Node) Submit(ctx context.Context, raw []byte) ([]Receipt, error) {
	b, err := scope.CheckBundle(raw, scope.MostLimits(), votes.Verify)
	if err != nil {
		return nil, err
	}
	p := n.part(b.Scope())
	if p == nil {
		return nil, fmt.Errorf("%w: %s", ErrNoScope, b.Scope().Short())
	}
	return p.Submit(ctx, raw)
}

// ReadOf gives a view of the state of the scope that decides about all of some ranges
// of keys. Errors wrap ErrSpans if there are several.
func (n *Node) ReadOf(ctx context.Context, ranges Ranges, linearizable bool) (v *View, err error) {
	err = n.on(ctx, ranges, func(p *Part) error {
		if v, err = p.Read(ctx, linearizable); err != nil {
			return err
		}
		if bad := v.owns(ranges); bad != nil {
			return errors.Join(bad, v.Close())
		}
		return nil
	})
	return v, err
}

// Prove gives a proof of the newest change of a key, from the scope that decides about
// it, and of how that descends from the network's root.
func (n *Node) Prove(ctx context.Context, key []byte) (p *scope.KeyProof, head scope.Head, err error) {
	err = n.anywhere(ctx, Keys(key), func(at decider) error {
		if at.foreign != nil {
			p, head, err = at.foreign.prove(ctx, key)
		} else {
			p, head, err = at.Part.Prove(ctx, key)
			err = at.stillOwns(key, err)
		}
		return err
	})
	return p, head, err
}

// stillOwns is the error of a read of a key, or that the key went to another scope before
// the state that was read.
func (n *Part) stillOwns(key []byte, err error) error {
	if len(scope.Touching(n.Delegations(), key, nil)) > 0 {
		return scope.ErrElsewhere
	}
	return err
}

// Look carries out a transaction that only reads in the scope that decides about its keys.
// Errors wrap ErrSpans if there are several.
func (n *Node) Look(ctx context.Context, t *scope.Txn, linearizable bool) (l Looked, err error) {
	err = n.anywhere(ctx, t.Ranges, func(at decider) error {
		if at.foreign != nil {
			l, _, err = at.foreign.look(ctx, t, linearizable, 0)
			return err
		}
		v, err := at.Part.Read(ctx, linearizable)
		if err != nil {
			return err
		}
		if err = v.owns(t.Ranges); err == nil {
			l, err = v.Look(t)
		}
		return errors.Join(err, v.Close())
	})
	return l, err
}

// owns says why some of the keys are not the scope's own.
func (v *View) owns(ranges Ranges) error { return owns(v.State, ranges) }

// Lineage lists what happened to the object that a key names, newest first: in the
// scope that decides about the key, and in those where the object was before.
func (n *Node) Lineage(ctx context.Context, key []byte, limit int) (deeds []Deed, more bool, head scope.Head, err error) {
	err = n.anywhere(ctx, Keys(key), func(at decider) error {
		if at.foreign != nil {
			deeds, more, head, err = at.foreign.lineage(ctx, key, limit)
		} else {
			deeds, more, head, err = at.Part.Lineage(ctx, key, limit)
			err = at.stillOwns(key, err)
		}
		return err
	})
	for err == nil && !more && len(deeds) > 0 && len(deeds) < limit {
		oldest := &deeds[len(deeds)-1]
		if oldest.Class != lineage.TakenOver {
			break
		}
		before := n.parent(oldest.Scope)
		if before == nil { // another node has it
			more = true
			break
		}
		var o Object
		if o, err = before.Object(ctx, oldest.Object.String(), limit-len(deeds), false); err == nil {
			deeds, more = append(deeds, o.Deeds...), o.More
		}
	}
	return deeds, more, head, err
}

// parent is the part in the scope above another, nil if this node has none.
func (n *Node) parent(id aweigh.ScopeID) *Part {
	var d *scope.Descent
	if p := n.part(id); p != nil {
		d = p.genesis.Descent
	} else if f := n.foreign(id); f != nil {
		d = f.genesis.Descent
	}
	if d == nil {
		return nil
	}
	return n.part(d.Parent)
}

// Object finds an object in all scopes that this node follows: where, it knows by
// itself; what, as of a linearizable read of that scope if one is asked for.
func (n *Node) Object(ctx context.Context, prefix string, limit int, linearizable bool) (found Object, err error) {
	err = fmt.Errorf("%w: %q", ErrNoObject, prefix)
	at := n.Part
	for _, p := range n.Parts() {
		o, here := p.Object(ctx, prefix, limit, false)
		switch {
		case errors.Is(here, ErrNoObject) || errors.Is(here, ErrInstalling):
			continue
		case here != nil:
			return o, here
		case err == nil && o.UID != found.UID:
			return o, fmt.Errorf("%w: %q may be %s, %s", ErrAmbiguous, prefix, found.UID, o.UID)
		}
		if err != nil || len(o.Aliases) > 0 || found.went() { // it lives where it has a name; elsewhere it was
			found, at, err = o, p, nil
		}
	}
	if err == nil && found.went() {
		d := &found.Deeds[0]
		return found, fmt.Errorf("%w of object %s, which was handed over with %q; ask by that name", ErrNotHeld, found.UID, d.Key)
	}
	if linearizable {
		return at.Object(ctx, prefix, limit, true)
	}
	return found, err
}
