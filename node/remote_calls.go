package node

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/action"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/lineage"
	"github.com/aweigh/aweigh/node/admission"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/node/referral"
	"github.com/aweigh/aweigh/scope"
)

// say returns the answer of enough anchors to a question, decoded into out. If the scope refuses, the error wraps its
// reason.
func (f *remoteScope) say(ctx context.Context, ask referral.Question, out any) (scope.Head, error) {
	a, err := f.ask(ctx, ask, nil)
	if err != nil {
		return scope.Head{}, err
	}
	h := f.knows.Head(&a)
	if len(a.Body) > 0 || a.Failure == "" {
		if err := canon.Decode(a.Body, out); err != nil {
			return h, fmt.Errorf("node: an answer of scope %q: %w", f.genesis.Prefix(), err)
		}
	}
	return h, scope.Failure(a.Failure)
}

// look carries out a transaction that only reads, as of a revision; 0: the newest.
func (f *remoteScope) look(ctx context.Context, t *scope.Txn, linearizable bool, at int64) (l referral.Looked, head scope.Head, err error) {
	head, err = f.say(ctx, referral.Question{Kind: referral.AskLook, Newest: linearizable, At: at, Body: canon.Encode(t)}, &l)
	if err == nil {
		err = l.Wrong(t)
	}
	if errors.Is(err, scope.ErrTooMuch) {
		err = &largeError{f.genesis.Prefix()}
	}
	if err != nil {
		return referral.Looked{}, head, err
	}
	l.Revision = head.Revision
	for i := range l.Responses {
		l.Responses[i].Range.Revision = head.Revision
	}
	return l, head, err
}

// largeError is scope.ErrTooMuch of a read in a scope that this node does not hold.
type largeError struct{ prefix []byte }

func (e *largeError) Error() string {
	return fmt.Sprintf("node: this node does not hold scope %q, and one answer of its anchors has at most %d MiB and is about at most %d versions of keys; read less at once, or at a node that holds the scope",
		e.prefix, referral.MaxBytes>>20, foreignVisits)
}

func (e *largeError) Unwrap() error { return scope.ErrTooMuch }

// rangeOf reads the keys [key, end), in the sense of scope.Op.
// A read that may be old is answered from a copy, if this node has one.
func (f *remoteScope) rangeOf(ctx context.Context, key, end []byte, r scope.Range, linearizable bool) (scope.RangeResult, scope.Head, error) {
	if r.Revision > 0 {
		return f.rangeAsked(ctx, key, end, r, linearizable)
	}
	if !linearizable {
		if res, head, ok := f.copied(ctx, key, end, &r); ok {
			return res, head, nil
		}
	}
	aged, age := Aged(ctx)
	res, head, err := f.rangeAsked(aged, key, end, r, linearizable)
	noteAge(ctx, age.Oldest(), age.remembered.Load())
	if err == nil {
		f.shown(referral.Between(key, end), head.Revision)
	}
	if err == nil && !linearizable && !age.remembered.Load() {
		f.asked(key, end)
	}
	return res, head, err
}

// rangeAsked is rangeOf without copies.
func (f *remoteScope) rangeAsked(ctx context.Context, key, end []byte, r scope.Range, linearizable bool) (scope.RangeResult, scope.Head, error) {
	t := scope.Txn{Success: []scope.Op{{Kind: scope.OpRange, Key: key, End: end, Range: &r}}}
	l, head, err := f.look(ctx, &t, linearizable, r.Revision)
	if err != nil {
		return scope.RangeResult{}, head, err
	}
	return l.Responses[0].Range, head, nil
}

// prove returns a verified proof of the newest change of a key.
func (f *remoteScope) prove(ctx context.Context, key []byte) (p *scope.KeyProof, head scope.Head, err error) {
	a, err := f.ask(ctx, referral.Question{Kind: referral.AskProve, Newest: true, Body: key}, func(body []byte) error {
		got, err := scope.DecodeKeyProof(body)
		if err != nil {
			return err
		}
		if got.Ancestry.Genesis.Hash() != f.id || string(got.Change.Entry.Key) != string(key) {
			return fmt.Errorf("%w: of another scope or key", scope.ErrProof)
		}
		_, err = got.Verify(f.genesis.Network())
		return err
	})
	if err != nil {
		return nil, head, err
	}
	if p, err = scope.DecodeKeyProof(a.Body); err != nil {
		return nil, head, err
	}
	h := &p.Ancestry.Head.Header
	f.shown(referral.Keys(key), p.Kv.ModRevision)
	return p, f.knows.Head(&referral.Answer{Epoch: h.Epoch, Height: h.Height, Time: h.Time}), nil
}

func (f *remoteScope) resolve(ctx context.Context, key []byte, version int64, linearizable bool) (r referral.Resolved, head scope.Head, err error) {
	head, err = f.say(ctx, referral.Question{Kind: referral.AskResolve, Newest: linearizable, Body: canon.Encode(referral.Name{Key: key, Version: version})}, &r)
	f.shown(referral.Keys(key, r.Key), head.Revision)
	return r, head, err
}

// foreignHistory asks for the history of the object that a key names.
type foreignHistory struct {
	_     struct{} `cbor:",toarray"`
	Key   []byte
	Limit int64
}

type foreignLineage struct {
	_      struct{} `cbor:",toarray"`
	All    []foreignLineageEntry
	More   bool
	Before aweigh.UID
}

// foreignLineageEntry is a LineageEntry in its encoded form.
type foreignLineageEntry struct {
	_       struct{} `cbor:",toarray"`
	Entry   lineage.Entry
	Index   int64
	Block   aweigh.Hash
	Time    aweigh.Instant
	Version int64
	Name    string
	Acts    string
}

// foreignEntries bounds the entries in one answer.
const foreignEntries = 200

func (n *Replica) historyForeign(ctx context.Context, p machine.Peer, v *View, x foreignHistory) ([]byte, error) {
	l, err := n.lineageIn(ctx, v, x.Key, int(x.Limit))
	if err == nil {
		err = n.hidesNames(p, l.names())
	}
	if err != nil {
		return nil, err
	}
	out := foreignLineage{More: l.More, Before: l.Before}
	for i := range l.Entries {
		d := &l.Entries[i]
		out.All = append(out.All, foreignLineageEntry{
			Entry: d.Entry, Index: d.Index, Block: d.Block, Time: d.Time, Version: d.Version, Name: d.Name, Acts: d.Acts,
		})
	}
	return canon.Encode(out), nil
}

func (f *remoteScope) lineage(ctx context.Context, key []byte, limit int) (l KeyLineage, head scope.Head, err error) {
	var got foreignLineage
	head, err = f.say(ctx, referral.Question{Kind: referral.AskHistory, Newest: true, Body: canon.Encode(foreignHistory{Key: key, Limit: int64(min(limit, foreignEntries))})}, &got)
	f.shown(referral.Keys(key), head.Revision)
	l.More, l.Before = got.More, got.Before
	for i := range got.All {
		d := &got.All[i]
		l.Entries = append(l.Entries, LineageEntry{
			Entry: d.Entry, Index: d.Index, Block: d.Block, Time: d.Time, Version: d.Version, Name: d.Name, Acts: d.Acts,
		})
	}
	return l, head, err
}

// foreignQuery is an ActionQuery in its encoded form.
type foreignQuery struct {
	_      struct{} `cbor:",toarray"`
	Verb   string
	Key    []byte
	Caller aweigh.Hash
	Try    *action.Rule
}

// foreignVerdict is the encoded Said of the scope that is asked.
type foreignVerdict struct {
	_                struct{} `cbor:",toarray"`
	Decides, Allowed bool
	Class            uint8
	Rule, Why        string
}

func (n *Replica) judgeForeign(ctx context.Context, p machine.Peer, ask referral.Question, a *referral.Answer) ([]byte, error) {
	var q foreignQuery
	err := canon.Decode(ask.Body, &q)
	if err == nil {
		err = action.CheckVerb(q.Verb)
	}
	if err == nil && q.Try != nil { // the asker's own rules have to be compiled
		err = n.charge(ctx, p, foreignBlock, 0)
	}
	if err == nil && q.Try != nil {
		err = q.Try.Check()
	}
	if err != nil {
		return nil, err
	}
	v, err := n.Read(ctx, ask.Newest)
	if err != nil {
		return nil, err
	}
	head := v.Head()
	a.Said(&head)
	if err := v.Close(); err != nil {
		return nil, err
	}
	mayRead := func(key []byte) error { return n.refuses(p, referral.Keys(key)) }
	s, _, err := n.judge(ctx, ActionQuery{Verb: q.Verb, Key: q.Key, Caller: q.Caller, Try: q.Try, MayRead: mayRead}, false)
	if err == nil && s.Decides { // or it says nothing about the key
		if err := n.hidesVerdict(p, &q); err != nil {
			return nil, err
		}
	}
	return canon.Encode(foreignVerdict{Decides: s.Decides, Allowed: s.Allowed, Class: uint8(s.Class), Rule: s.Rule, Why: s.Why}), err
}

// judge returns the scope's judgment of a verb; next is the delegation of the key, if there is one.
func (f *remoteScope) judge(ctx context.Context, q ActionQuery, linearizable bool) (s Said, next *scope.Delegation, err error) {
	if q.Try != nil && q.MayRead != nil { // the answer does not say under which aliases the rule was asked
		return s, nil, fmt.Errorf("%w: rules are tried at a node that holds the scope", scope.ErrNoReader)
	}
	var got foreignVerdict
	ask := referral.Question{Kind: referral.AskJudge, Newest: linearizable, Body: canon.Encode(foreignQuery{Verb: q.Verb, Key: q.Key, Caller: q.Caller, Try: q.Try})}
	if _, err := f.say(ctx, ask, &got); err != nil {
		return s, nil, err
	}
	s = Said{Scope: f.id, Prefix: f.genesis.Prefix(), Decides: got.Decides}
	s.Allowed, s.Class, s.Rule, s.Why = got.Allowed, action.Class(got.Class), got.Rule, got.Why
	if s.Decides {
		return s, nil, nil
	}
	given := scope.Touching(f.delegations(), q.Key, nil)
	if len(given) == 0 {
		if err := f.learn(ctx, referral.Keys(q.Key)); err != nil {
			return s, nil, err
		}
		if given = scope.Touching(f.delegations(), q.Key, nil); len(given) == 0 {
			return s, nil, scope.ErrElsewhere
		}
	}
	return s, &given[0], nil
}

// outcome returns the outcome of a mutation in the scope, if that is on record.
func (f *remoteScope) outcome(ctx context.Context, id aweigh.Hash) (r machine.Receipt, known bool, err error) {
	a, err := f.ask(ctx, referral.Question{Kind: referral.AskOutcome, Newest: true, Body: id[:]}, nil)
	if err != nil || len(a.Body) == 0 {
		return r, false, err
	}
	r, err = f.receipt(a.Body, id)
	return r, err == nil, err
}

// mutation returns a request in this node's name. once must be filled in.
func (f *remoteScope) mutation(class scope.Class, content []byte, once Once) scope.Mutation {
	return scope.Mutation{
		Scope: f.id, Class: class, Author: f.of.root.author, Content: content,
		Justification: once.Justification, Caller: once.Caller, Nonce: once.Nonce, ValidUntil: once.ValidUntil, Patient: once.Patient,
	}
}

// reach returns the weight of the anchors that this node is connected to, and the weight that a decision needs.
func (f *remoteScope) reach() (weight, needed uint64) {
	e := f.known()
	for _, info := range f.of.host.Peers() {
		for i := range e.Roster.Anchors {
			if a := &e.Roster.Anchors[i]; a.Peer == string(f.of.called.of(info.ID)) {
				weight += e.Roster.Weights.Of(a.Key.ID())
			}
		}
	}
	return weight, e.Policy.Rules.Finalize.Threshold(e.Roster.Weights.Total())
}

// foreignReserve is the most that a node reserves in a scope that it does not hold: anchors accept no more at once
// from a peer that is no anchor, including the base cost of the mutation's form.
const foreignReserve = 18_000

// propose submits a mutation to the scope in this node's name, and waits until enough of its anchors report the
// outcome.
func (f *remoteScope) propose(ctx context.Context, class scope.Class, content []byte, once Once) (r machine.Receipt, err error) {
	ctx, cancel := f.of.root.deadline(ctx)
	defer cancel()
	policy := &f.known().Policy
	if admission.Paced(class) {
		if err := f.pace.Wait(ctx, 1, policy, f.genesis.Prefix()); err != nil {
			return r, err
		}
	}
	m := f.mutation(class, content, once)
	for reserve := int64(0); ; reserve = max(4*reserve, 1024) { // this node does not know what the scope holds
		if r, err = f.attempt(ctx, m, reserve, once.drawn); err != nil || r.Code != scope.Exceeded {
			return r, err
		}
		if max(4*reserve, 1024) <= foreignReserve {
			continue
		}
		if !once.drawn { // see Replica.proposeAt
			return r, f.undecided(scope.ErrTooMuch, &m)
		}
		return r, scope.ErrTooMuch
	}
}

// attempt hands in a mutation with a reserve, and waits for its outcome.
// If nothing was signed before with its nonce, it is fresh, and one that the scope's newest policy denies is not handed
// in.
func (f *remoteScope) attempt(ctx context.Context, m scope.Mutation, reserve int64, fresh bool) (r machine.Receipt, err error) {
	b, err := scope.SignReserving(reserve, f.of.cfg.Identity, f.known().Policy.Limits, m)
	if err != nil {
		return r, err
	}
	id := b.Mutations()[0].ID
	if fresh && f.known().Admits(b) != nil {
		f.catchUp(ctx)
		if why := f.known().Admits(b); why != nil {
			return r, f.of.advised(why, fmt.Sprintf(" --scope %s", f.genesis.Prefix()))
		}
	}
	begin := time.Now()
	a, err := f.ask(ctx, referral.Question{Kind: referral.AskSubmit, Body: b.Raw()}, nil)
	if errors.Is(err, scope.ErrDenied) { // all refused it
		return r, f.of.advised(err, fmt.Sprintf(" --scope %s", f.genesis.Prefix()))
	}
	if err != nil {
		return r, f.undecided(err, &b.Mutations()[0].Mutation)
	}
	switch {
	case a.Failure == new(machine.ExpiredError).Error():
		return r, &machine.ExpiredError{Time: f.time()}
	case errors.Is(scope.Failure(a.Failure), scope.ErrElsewhere):
		return r, scope.ErrElsewhere
	case a.Failure != "":
		return r, fmt.Errorf("%w: %s", machine.ErrNotTaken, a.Failure)
	}
	f.of.root.measured.commits.since(begin)
	if r, err = f.receipt(a.Body, id); err == nil {
		var ranges referral.Ranges // all keys, unless it says which
		if t := b.Mutations()[0].Txn; t != nil {
			ranges = t.Ranges
		}
		f.shown(ranges, r.Revision)
	}
	return r, err
}

func (f *remoteScope) undecided(cause error, m *scope.Mutation) error {
	u := &UndecidedError{
		Mutation: scope.ID(m.Encode()), Prefix: f.genesis.Prefix(), ValidUntil: m.ValidUntil, Cause: cause,
	}
	u.Reachable, u.Needed = f.reach()
	return u
}

// receipt returns the receipt of a mutation in an answer.
func (f *remoteScope) receipt(body []byte, id aweigh.Hash) (r machine.Receipt, err error) {
	all, err := referral.DecodeReceipts(body, f.id)
	if err == nil && (len(all) != 1 || all[0].Mutation != id) {
		err = errors.New("it is about something else")
	}
	if err != nil {
		return r, fmt.Errorf("node: the receipt of scope %q: %w", f.genesis.Prefix(), err)
	}
	return all[0], nil
}
