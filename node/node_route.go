package node

import (
	"bytes"
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

// governs finds the part in the scope that decides about all keys of [key, end), in
// the sense of scope.Op.
func (n *Node) governs(ctx context.Context, key, end []byte) (*Part, error) {
	p := n.Part
	for {
		touched := scope.Touching(p.Delegations(), key, end)
		if len(touched) == 0 {
			return p, nil
		}
		if d := touched[0]; !scope.Covers(d.Prefix, key, end) {
			return nil, fmt.Errorf("%w: %q has a scope of its own", ErrSpans, d.Prefix)
		}
		var err error
		if p, err = n.awaitPart(ctx, touched[0]); err != nil {
			return nil, err
		}
	}
}

// Delegations are the prefixes that the part's scope has delegated, in order.
func (n *Part) Delegations() []scope.Delegation { return *n.given.Load() }

// awaitPart is the node's part in a scope that was delegated to, which may be about
// to be opened.
func (n *Node) awaitPart(ctx context.Context, d scope.Delegation) (*Part, error) {
	for {
		n.mu.RLock()
		p, opened, broken := n.parts[placeOf(d.Child)], n.opened, n.broken[d.Child]
		n.mu.RUnlock()
		if p != nil || broken != nil {
			return p, broken
		}
		select {
		case <-opened:
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-n.runner.replies.done:
			return nil, n.runner.replies.stopped
		}
	}
}

// on has f ask the part that decides about some ranges of keys, and the child's if
// the keys went there meanwhile.
func (n *Node) on(ctx context.Context, ranges Ranges, f func(*Part) error) error {
	ctx, cancel := n.deadline(ctx)
	defer cancel()
	again := time.Millisecond
	for {
		var p *Part
		var err error
		ranges(func(key, end []byte) bool {
			var q *Part
			if q, err = n.governs(ctx, key, end); err == nil && p != nil && p != q {
				err = fmt.Errorf("%w: %s and %s", ErrSpans, p.name(), q.name())
			}
			p = q
			return err == nil
		})
		if err != nil {
			return err
		}
		if p == nil {
			p = n.Part
		}
		if err = f(p); !errors.Is(err, scope.ErrElsewhere) {
			return err
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
	return n.route(ctx, t.Ranges, scope.Write, canon.Encode(t), once, func(p *Part, once Once) (Receipt, error) {
		return n.attached(ctx, p, t, once)
	})
}

// Naming proposes a change of names in the scope that decides about them.
func (n *Node) Naming(ctx context.Context, c scope.Naming, once Once) (Receipt, error) {
	return n.route(ctx, Keys(c.Key, c.To, c.From), scope.Name, canon.Encode(c), once, func(p *Part, once Once) (Receipt, error) {
		return p.Naming(ctx, c, once)
	})
}

// route proposes something where some keys are decided about. What was done before
// they went to another scope is not done there once more.
func (n *Node) route(ctx context.Context, keys Ranges, class scope.Class, content []byte, once Once, propose func(*Part, Once) (Receipt, error)) (r Receipt, err error) {
	repeated := once.Nonce != nil
	once = n.filled(once)
	err = n.on(ctx, keys, func(p *Part) error {
		if repeated {
			before, known, err := n.before(p, class, content, once)
			if known || err != nil {
				r = before
				return err
			}
		}
		r, err = propose(p, once)
		return taken(r, err)
	})
	return r, err
}

// before is what became of a request in a scope above, if it was done there: all that
// was ordered there about keys of this scope is in this node's state.
func (n *Node) before(p *Part, class scope.Class, content []byte, once Once) (r Receipt, known bool, err error) {
	for d := p.cfg.Genesis.Descent; d != nil; d = p.cfg.Genesis.Descent {
		if p = n.part(d.Parent); p == nil || p.vacant.Load() {
			return r, false, nil
		}
		id := scope.ID(p.mutation(class, content, once).Encode())
		s, err := p.views.open()
		if err != nil {
			return r, false, err
		}
		was, ok, err := s.Outcome(id)
		if err := errors.Join(err, p.views.release(s)); err != nil {
			return r, false, err
		}
		if ok && was.Code == scope.Applied {
			return Receipt{
				Outcome: scope.Outcome{Mutation: id, Code: scope.Duplicate, Reason: was.Reason, Revision: was.Revision, Succeeded: was.Succeeded},
				Height:  was.Height, Scope: p.id,
			}, true, nil
		}
	}
	return r, false, nil
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
		var bad error
		ranges(func(key, end []byte) bool {
			touched, err := v.Touching(key, end)
			if bad = err; err == nil && len(touched) > 0 {
				bad = scope.ErrElsewhere
			}
			return bad == nil
		})
		if bad != nil {
			bad = errors.Join(bad, v.Close())
		}
		return bad
	})
	return v, err
}

// Prove gives a proof of the newest change of a key, from the scope that decides about
// it, and of how that descends from the network's root.
func (n *Node) Prove(ctx context.Context, key []byte) (p *scope.KeyProof, head scope.Head, err error) {
	err = n.on(ctx, Keys(key), func(q *Part) error {
		p, head, err = q.Prove(ctx, key)
		return err
	})
	return p, head, err
}

// Lineage lists what happened to the object that a key names, newest first: in the
// scope that decides about the key, and in those where the object was before.
func (n *Node) Lineage(ctx context.Context, key []byte, limit int) (deeds []Deed, more bool, head scope.Head, err error) {
	err = n.on(ctx, Keys(key), func(p *Part) error {
		deeds, more, head, err = p.Lineage(ctx, key, limit)
		return err
	})
	for err == nil && !more && len(deeds) > 0 && len(deeds) < limit {
		oldest := &deeds[len(deeds)-1]
		here := n.part(oldest.Scope)
		if oldest.Class != lineage.TakenOver || here == nil {
			break
		}
		before := n.part(here.cfg.Genesis.Descent.Parent)
		if before == nil {
			break
		}
		var o Object
		if o, err = before.Object(ctx, oldest.Object.String(), limit-len(deeds), false); err == nil {
			deeds, more = append(deeds, o.Deeds...), o.More
		}
	}
	return deeds, more, head, err
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
		if err != nil || len(o.Aliases) > 0 { // it lives where it has a name; elsewhere it was
			found, at, err = o, p, nil
		}
	}
	if linearizable {
		return at.Object(ctx, prefix, limit, true)
	}
	return found, err
}

// In is the part in a scope by its prefix, or by how its identity begins, in hex.
func (n *Node) In(name string) (*Part, error) {
	var found *Part
	for _, p := range n.Parts() {
		switch {
		case string(p.prefix) == name:
			return p, nil
		case len(name) < leastPrefix || !bytes.HasPrefix([]byte(p.id.String()), []byte(name)):
		case found != nil:
			return nil, fmt.Errorf("%w: the identities of several begin with %s", ErrNoScope, name)
		default:
			found = p
		}
	}
	if found == nil && name == "/" { // which may be delegated, so it never means the root's
		return nil, fmt.Errorf("%w: %q; the root scope is meant where none is named", ErrNoScope, name)
	}
	if found == nil {
		return nil, fmt.Errorf("%w: %q; aweigh scope ls shows those that are", ErrNoScope, name)
	}
	return found, nil
}

// ScopeInfo is a scope as this node sees it.
type ScopeInfo struct {
	Genesis  scope.Genesis
	Head     scope.Head
	Epoch    *scope.Epoch
	Anchor   bool // this node holds an anchor there
	Failures int  // see Reach
	Behind   bool
}

// Scopes are those that this node follows, the root's first, and a child after its
// parent.
func (n *Node) Scopes() (all []ScopeInfo) {
	for _, p := range n.Parts() {
		s := p.Status()
		all = append(all, ScopeInfo{
			Genesis: p.cfg.Genesis, Head: s.Head, Epoch: p.roll.epoch(), Anchor: !s.Self.IsZero(),
			Failures: p.reach(s).Failures, Behind: p.CatchingUp(),
		})
	}
	return all
}

// network is the identity of the network that the scope is part of.
func (n *Part) network() aweigh.NetworkID { return n.cfg.Genesis.Network() }

// Root is the node's part in the root scope.
func (n *Node) Root() *Part { return n.Part }

// Scope is the identity of the part's scope.
func (n *Part) Scope() aweigh.ScopeID { return n.id }

// name is what people call the scope.
func (n *Part) name() string {
	if len(n.prefix) == 0 {
		return "/"
	}
	return fmt.Sprintf("%q", n.prefix)
}

// Prefix is that of all keys of the part's scope.
func (n *Part) Prefix() []byte { return n.prefix }
