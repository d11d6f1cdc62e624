package node

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/lineage"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/node/referral"
	"github.com/aweigh/aweigh/scope"
)

// The scope with the longest prefix of a key decides about the key. It is found scope by scope from the root
// (resolution, see docs/scopes.md). A scope may delegate a prefix while a request about it is under way: the scope
// then refuses the request without doing anything, and the request goes to the child. Likewise, a scope that goes back
// to the one above takes no more requests, and they wait until that has the keys.

// ErrSpans is wrapped where a request is about keys of several scopes.
var ErrSpans = errors.New("node: the keys belong to several scopes, and each decides for itself; ask for those of one at a time")

// ErrNoScope is wrapped where a request names a scope that this node does not know.
var ErrNoScope = errors.New("node: no such scope here")

// owner is a scope that decides about some keys: this node holds it, or it is foreign.
type owner struct {
	replica *Replica
	remote  *remoteScope
}

func (d owner) delegations() []scope.Delegation {
	if d.remote != nil {
		return d.remote.delegations()
	}
	return d.replica.Delegations()
}

// time returns the instant from which this node dates mutations for the scope. For a scope that this node does not
// hold, its revisions show the scope's time.
func (d owner) time() aweigh.Instant {
	if d.remote != nil {
		return d.remote.time()
	}
	return d.replica.time()
}

func (d owner) name() string {
	if d.remote != nil {
		return fmt.Sprintf("%q", d.remote.genesis.Prefix())
	}
	return d.replica.name()
}

func (d owner) genesis() scope.Genesis {
	if d.remote != nil {
		return d.remote.genesis
	}
	return *d.replica.genesis
}

// held returns the replica in the scope. Errors wrap ErrNotHeld.
func (d owner) held() (*Replica, error) {
	if d.remote != nil {
		return nil, d.remote.notHeld()
	}
	return d.replica, nil
}

// proposer submits mutations to a scope.
type proposer interface {
	propose(ctx context.Context, class scope.Class, content []byte, once Once) (machine.Receipt, error)
}

func (d owner) proposer() proposer {
	if d.remote != nil {
		return d.remote
	}
	return d.replica
}

// governs returns the scope that decides about all keys of [key, end), in the sense of scope.Op.
func (n *Node) governs(ctx context.Context, key, end []byte) (at owner, err error) {
	at.replica = n.root
	for {
		touched := scope.Touching(at.delegations(), key, end)
		if len(touched) == 0 {
			return at, nil
		}
		if d := touched[0]; !scope.Covers(d.Prefix, key, end) {
			return at, fmt.Errorf("%w: %q has a scope of its own", ErrSpans, d.Prefix)
		}
		below, err := n.awaitDecider(ctx, touched[0])
		if err != nil {
			return at, err
		}
		if below.closed() {
			if err := n.awaitHome(ctx, at, touched[0]); err != nil {
				return at, err
			}
			if at.remote != nil { // it decides about the keys, or refers to their scope again
				return at, nil
			}
			continue
		}
		at = below
	}
}

// Delegations returns the delegations of the replica's scope, in order.
func (n *Replica) Delegations() []scope.Delegation { return n.given.Load().Delegations() }

// awaitDecider returns the scope that a delegation founded, once its replica is open.
func (n *Node) awaitDecider(ctx context.Context, d scope.Delegation) (owner, error) {
	for {
		n.mu.RLock()
		p, opened, broken := n.replicas[placeOf(d.Child)], n.opened, n.broken[d.Child]
		n.mu.RUnlock()
		if p != nil || broken != nil {
			return owner{replica: p}, broken
		}
		if f := n.foreign(d.Child); f != nil {
			return owner{remote: f}, nil
		}
		select {
		case <-opened:
		case <-ctx.Done():
			return owner{}, ctx.Err()
		case <-n.root.runner.replies.done:
			return owner{}, n.root.runner.replies.stopped
		}
	}
}

// withHeld calls f with the replica that decides about some ranges of keys, and again with the child's if the keys
// were delegated meanwhile. Errors wrap ErrNotHeld if this node has no such replica.
func (n *Node) withHeld(ctx context.Context, ranges referral.Ranges, f func(*Replica) error) error {
	return n.withOwner(ctx, ranges, func(d owner) error {
		p, err := d.held()
		if err != nil {
			return err
		}
		return f(p)
	})
}

// Holds reports whether this node holds the scope that decides about some ranges of keys.
func (n *Node) Holds(ctx context.Context, ranges referral.Ranges) (bool, error) {
	err := n.withHeld(ctx, ranges, func(*Replica) error { return nil })
	if errors.Is(err, ErrNotHeld) {
		return false, nil
	}
	return err == nil, err
}

// withOwner is withHeld for callers that ask foreign scopes as well.
func (n *Node) withOwner(ctx context.Context, ranges referral.Ranges, f func(owner) error) error {
	ctx, cancel := n.root.deadline(ctx)
	defer cancel()
	again, reread := time.Millisecond, rereading(ctx)
	for {
		reread()
		var at owner
		var err error
		ranges(func(key, end []byte) bool {
			var q owner
			if q, err = n.governs(ctx, key, end); err == nil && at != (owner{}) && at != q {
				err = fmt.Errorf("%w: %s and %s", ErrSpans, at.name(), q.name())
			}
			at = q
			return err == nil
		})
		if err != nil {
			return err
		}
		if at == (owner{}) {
			at.replica = n.root
		}
		if err = f(at); !errors.Is(err, scope.ErrElsewhere) {
			return err
		}
		if at.remote != nil { // the foreign scope has delegated some of them, or is closed
			if err := at.remote.follow(ctx, ranges); err != nil {
				return err
			}
			again = time.Millisecond
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(again): // the delegation is usually known at once
		}
		again = min(2*again, time.Second)
	}
}

// taken returns an error if a receipt says that another scope decides.
func taken(r machine.Receipt, err error) error {
	if err == nil && r.Code == scope.Failed {
		if why := scope.Failure(r.Reason); errors.Is(why, scope.ErrElsewhere) {
			return why
		}
	}
	return err
}

// Txn proposes a transaction in this node's name, in the scope that decides about its keys, and waits until it is
// final. Errors wrap ErrSpans if the keys belong to several scopes.
func (n *Node) Txn(ctx context.Context, t scope.Txn, once Once) (machine.Receipt, error) {
	r, err := n.route(ctx, t.Ranges, scope.Write, canon.Encode(t), once, attaches(&t))
	var u *UndecidedError
	if errors.As(err, &u) && u.Reachable < u.Needed {
		u.Next = n.instead(u.Scope, &t)
	}
	return r, err
}

// Naming proposes a change of names in the scope that decides about them. A Move between two scopes sends the object;
// see transfer.
func (n *Node) Naming(ctx context.Context, c scope.Naming, once Once) (machine.Receipt, error) {
	if c.Kind == scope.Send {
		return n.transfer(ctx, c, once)
	}
	r, err := n.route(ctx, referral.Keys(c.Key, c.To, c.From), scope.Name, canon.Encode(c), once, nil)
	if c.Kind == scope.Move && errors.Is(err, ErrSpans) {
		return n.transfer(ctx, c, once)
	}
	return r, err
}

// route proposes a mutation, with the leases that it names, in the scope that decides about some keys. A mutation that
// was applied before the keys were delegated is not applied again in the child.
func (n *Node) route(ctx context.Context, keys referral.Ranges, class scope.Class, content []byte, once Once, leases []int64) (r machine.Receipt, err error) {
	repeated := once.Nonce != nil
	once.draw()
	err = n.withOwner(ctx, keys, func(at owner) error {
		undated := once
		once := once.dated(at.time())
		if repeated {
			before, known, err := n.before(ctx, at, keys, class, content, once)
			if known || err != nil {
				r = before
				return err
			}
		}
		r, err = n.attached(ctx, at.proposer(), class, content, once, leases)
		if once.ValidUntil != undated.ValidUntil && errors.As(err, new(*machine.ExpiredError)) { // the scope's time is known better now
			r, err = n.attached(ctx, at.proposer(), class, content, undated.dated(at.time()), leases)
		}
		return taken(r, err)
	})
	return r, err
}

// Submit takes a bundle that its author signed, for the scope that it names, and
// waits until all of its mutations are final. The receipts are in the bundle's order.
func (n *Node) Submit(ctx context.Context, raw []byte) ([]machine.Receipt, error) {
	id, err := scope.BundleScope(raw)
	if err != nil {
		return nil, err
	}
	p := n.replica(id)
	if p == nil {
		return nil, fmt.Errorf("%w: %s", ErrNoScope, id.Short())
	}
	return p.Submit(ctx, raw)
}

// ReadOf returns a view of the state of the scope that decides about all keys of some ranges. Errors wrap ErrSpans if
// the keys belong to several scopes.
func (n *Node) ReadOf(ctx context.Context, ranges referral.Ranges, linearizable bool) (v *View, err error) {
	err = n.withHeld(ctx, ranges, func(p *Replica) error {
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

// Prove returns a proof of the newest change of a key, from the scope that decides about it, and of how that scope
// descends from the network's root.
func (n *Node) Prove(ctx context.Context, key []byte) (p *scope.KeyProof, head scope.Head, err error) {
	err = n.withOwner(ctx, referral.Keys(key), func(at owner) error {
		if at.remote != nil {
			p, head, err = at.remote.prove(ctx, key)
		} else {
			p, head, err = at.replica.Prove(ctx, key)
			err = at.replica.stillOwns(key, err)
		}
		return err
	})
	return p, head, err
}

// stillOwns returns err, the error of a read of a key, or an error that says that the key was delegated before the
// state that was read, or went back to the scope above.
func (n *Replica) stillOwns(key []byte, err error) error {
	if len(scope.Touching(n.Delegations(), key, nil)) > 0 || n.closed() {
		return scope.ErrElsewhere
	}
	return err
}

// Look carries out a transaction that only reads in the scope that decides about its keys. Errors wrap ErrSpans if the
// keys belong to several scopes.
func (n *Node) Look(ctx context.Context, t *scope.Txn, linearizable bool) (l referral.Looked, err error) {
	err = n.withOwner(ctx, t.Ranges, func(at owner) error {
		if at.remote != nil {
			if l, _, err = at.remote.look(ctx, t, linearizable, 0); err == nil {
				at.remote.shown(t.Ranges, l.Revision)
				err = takenBy(answerIn(ctx), l.Responses)
			}
			return err
		}
		v, err := at.replica.Read(ctx, linearizable)
		if err != nil {
			return err
		}
		if err = v.owns(t.Ranges); err == nil {
			if l, err = v.Look(t); err == nil {
				err = takenBy(answerIn(ctx), l.Responses)
			}
		}
		return errors.Join(err, v.Close())
	})
	return l, err
}

// owns returns why some of the keys are not the scope's own, nil if all are.
func (v *View) owns(ranges referral.Ranges) error { return referral.Owns(v.State, ranges) }

// Lineage returns what happened to the object that a key names: in the scope that decides about the key, and in those
// where the object was before.
func (n *Node) Lineage(ctx context.Context, key []byte, limit int) (l KeyLineage, head scope.Head, err error) {
	err = n.withOwner(ctx, referral.Keys(key), func(at owner) error {
		if at.remote != nil {
			l, head, err = at.remote.lineage(ctx, key, limit)
		} else {
			l, head, err = at.replica.Lineage(ctx, key, limit)
			err = at.replica.stillOwns(key, err)
		}
		return err
	})
	if err == nil {
		l.Entries, l.More, err = n.throughFolds(ctx, l.Entries, l.More, limit)
	}
	for err == nil && !l.More && len(l.Entries) > 0 && len(l.Entries) < limit {
		oldest := &l.Entries[len(l.Entries)-1]
		if oldest.Class != lineage.TakenOver {
			break
		}
		before := n.parent(oldest.Scope)
		if before == nil { // the rest is at another node
			l.More = true
			break
		}
		var o Object
		if o, err = before.Object(ctx, oldest.Object.String(), limit-len(l.Entries), false); err == nil {
			l.Entries, l.More = append(l.Entries, o.Deeds...), o.More
			l.Entries, l.More, err = n.throughFolds(ctx, l.Entries, l.More, limit)
		}
	}
	return l, head, err
}

// parent returns the replica in the parent of a scope, nil if this node has none.
func (n *Node) parent(id aweigh.ScopeID) *Replica {
	var d *scope.Descent
	if p := n.replica(id); p != nil {
		d = p.genesis.Descent
	} else if f := n.foreign(id); f != nil {
		d = f.genesis.Descent
	}
	if d == nil {
		return nil
	}
	return n.replica(d.Parent)
}

// Object finds an object in all scopes that this node follows. It looks for the scope in this node's own states; the
// object is read as of a linearizable read of that scope if linearizable is set.
func (n *Node) Object(ctx context.Context, prefix string, limit int, linearizable bool) (found Object, err error) {
	err = fmt.Errorf("%w: %q", ErrNoObject, prefix)
	at := n.root
	for _, p := range n.Replicas() {
		o, here := p.Object(ctx, prefix, limit, false)
		switch {
		case errors.Is(here, ErrNoObject) || errors.Is(here, ErrInstalling):
			continue
		case here != nil:
			return o, here
		case err == nil && o.UID != found.UID:
			return o, fmt.Errorf("%w: %q may be %s, %s", ErrAmbiguous, prefix, found.UID, o.UID)
		}
		if err != nil || len(o.Aliases) > 0 || found.went() { // the object is in the scope where it has a name
			found, at, err = o, p, nil
		}
	}
	if err == nil && found.went() {
		d := &found.Deeds[0]
		return found, fmt.Errorf("%w of object %s, which was handed over with %q; ask by that name", ErrNotHeld, found.UID, d.Key)
	}
	if linearizable {
		found, err = at.Object(ctx, prefix, limit, true)
	}
	if err == nil {
		found.Deeds, found.More, err = n.throughFolds(ctx, found.Deeds, found.More, limit)
	}
	return found, err
}
