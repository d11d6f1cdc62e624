package node

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/action"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/node/referral"
	"github.com/aweigh/aweigh/scope"
)

// A verb is checked in every scope on the way from the root to the one that decides about the key, broadest first
// (docs/namespace.md). The judgments of the scopes above bind the nodes that carry requests, which are asked first;
// the judgment of the scope that decides binds its blocks.

// ActionQuery asks whether a caller may carry out a verb on what a key names.
type ActionQuery struct {
	Verb   string
	Key    []byte
	Caller aweigh.Hash  // votes.PublicKey.ID; zero: this node
	Try    *action.Rule // a rule for Verb in place of that of the scope that decides; nil: that one
	// MayRead reports why the asker may not read a key. A rule that it tries is asked under no such key. Nil: it may
	// read all.
	MayRead func(key []byte) error
}

// Said is one scope's answer to an ActionQuery.
type Said struct {
	Scope   aweigh.ScopeID
	Prefix  []byte
	Decides bool // it decides about the key, and no scope below it does
	action.Verdict
}

// Denied returns the first answer that denies, nil if all allow.
func Denied(said []Said) *Said {
	for i := range said {
		if !said[i].Allowed {
			return &said[i]
		}
	}
	return nil
}

// Denial says which scope denied an action, and why. It wraps scope.ErrDenied.
type Denial struct{ By Said }

// Error implements error.
func (d *Denial) Error() string {
	return fmt.Sprintf("node: denied by the scope of %s (%s): %s", prefixText(d.By.Prefix), d.By.Scope.Short(), d.By.Why)
}

// Unwrap returns scope.ErrDenied.
func (d *Denial) Unwrap() error { return scope.ErrDenied }

func prefixText(prefix []byte) string {
	if len(prefix) == 0 {
		return "all keys"
	}
	return strconv.Quote(string(prefix))
}

// ErrVerdict is wrapped where a verb is of a class that is carried out in another way.
var ErrVerdict = errors.New("node: not what that verb does")

// Judge returns the answers of all scopes on the way, broadest first; the last one decides about the key. The answers
// are from this node's own states, unless linearizable.
func (n *Node) Judge(ctx context.Context, q ActionQuery, linearizable bool) (said []Said, err error) {
	err = n.withHeld(ctx, referral.Keys(), func(*Replica) error {
		said, err = n.judge(ctx, q, linearizable)
		return err
	})
	return said, err
}

func (n *Node) judge(ctx context.Context, q ActionQuery, linearizable bool) (said []Said, err error) {
	if q.Caller.IsZero() {
		q.Caller = n.root.author
	}
	at := owner{replica: n.root}
	for {
		var s Said
		var next *scope.Delegation
		if at.remote != nil {
			s, next, err = at.remote.judge(ctx, q, linearizable)
		} else {
			s, next, err = at.replica.judge(ctx, q, linearizable)
		}
		if err != nil {
			return said, err
		}
		said = append(said, s)
		if next == nil {
			return said, nil
		}
		if at, err = n.awaitDecider(ctx, *next); err != nil {
			return said, err
		}
	}
}

// Judge returns the answer of the replica's scope alone.
func (n *Replica) Judge(ctx context.Context, q ActionQuery, linearizable bool) ([]Said, error) {
	s, _, err := n.judge(ctx, q, linearizable)
	if err != nil {
		return nil, err
	}
	return []Said{s}, nil
}

// judge returns the answer of the replica's scope; next is the delegation of the key, if there is one.
func (n *Replica) judge(ctx context.Context, q ActionQuery, linearizable bool) (s Said, next *scope.Delegation, err error) {
	v, err := n.Read(ctx, linearizable)
	if err != nil {
		return s, nil, err
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	touched, err := v.Touching(q.Key, nil)
	if err == nil && !scope.Covers(n.prefix, q.Key, nil) {
		err = fmt.Errorf("%w: %q is not below %q", scope.ErrElsewhere, q.Key, n.prefix)
	}
	if err != nil {
		return s, nil, err
	}
	if len(touched) > 0 {
		next = &touched[0]
	}
	s = Said{Scope: n.id, Prefix: n.prefix, Decides: next == nil}
	asks := scope.Question{Verb: q.Verb, Key: q.Key, Caller: q.Caller, Now: n.runner.now(), Pass: next != nil}
	if asks.Caller.IsZero() {
		asks.Caller = n.author
	}
	if q.Try != nil && s.Decides {
		if err := v.hidesAliases(&q); err != nil {
			return s, nil, err
		}
		asks.Rules = action.Prepare(action.Table{*q.Try})
	}
	s.Verdict, err = v.State.Verdict(asks)
	return s, next, err
}

// hidesAliases returns why a rule may not be tried under all aliases of an object, as those of writes and claims are:
// its verdict would tell the asker about aliases that it may not read.
func (v *View) hidesAliases(q *ActionQuery) error {
	if q.MayRead == nil || q.Try.Class != action.Write && q.Try.Class != action.Claim {
		return nil
	}
	r, ok, err := v.State.Resolve(q.Key)
	if err != nil || !ok || r.Moved != nil {
		return err
	}
	a, err := v.State.Aliases(r.Kv.UID)
	for i := 0; i < len(a.Keys) && err == nil; i++ {
		err = q.MayRead(a.Keys[i])
	}
	return err
}

// Act carries out an action of class write or claim in the scope that decides about its key, and waits until it is
// final. If a scope above denies it, the error is a Denial; the judgment of the scope that decides is in the receipt.
func (n *Node) Act(ctx context.Context, a scope.Action, once Once) (r machine.Receipt, err error) {
	if a.Class != action.Write && a.Class != action.Claim {
		return r, fmt.Errorf("%w: %s is of class %s, and nothing is ordered", ErrVerdict, a.Verb, a.Class)
	}
	repeated := once.Nonce != nil
	once.draw()
	err = n.withOwner(ctx, referral.Keys(a.Key), func(at owner) error {
		once := once.dated(at.time())
		known := false
		if at.remote == nil {
			known, err = at.replica.onRecord(ctx, scope.Act, canon.Encode(a), once)
		} else if repeated {
			_, known, err = at.remote.outcome(ctx, scope.ID(at.remote.mutation(scope.Act, canon.Encode(a), once).Encode()))
		}
		if err != nil {
			return err
		}
		if !known { // or it was allowed before
			said, err := n.judge(ctx, ActionQuery{Verb: a.Verb, Key: a.Key}, false)
			if err != nil {
				return err
			}
			if d := Denied(said); d != nil && !d.Decides {
				return &Denial{*d}
			}
		}
		if at.remote != nil {
			r, err = at.remote.propose(ctx, scope.Act, canon.Encode(a), once)
		} else {
			r, err = at.replica.propose(ctx, scope.Act, canon.Encode(a), once)
		}
		return taken(r, err)
	})
	return r, err
}

// onRecord reports whether a request is on record already.
func (n *Replica) onRecord(ctx context.Context, class scope.Class, content []byte, once Once) (ok bool, err error) {
	v, err := n.Read(ctx, false)
	if err != nil {
		return false, err
	}
	m := n.mutation(class, content, once)
	_, ok, err = v.Outcome(scope.ID(m.Encode()))
	return ok, errors.Join(err, v.Close())
}
