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
	"github.com/aweigh/aweigh/scope"
)

// say is what enough anchors say to a question, decoded into out. Errors wrap what the
// scope fails for.
func (f *foreign) say(ctx context.Context, ask ForeignAsk, out any) (scope.Head, error) {
	a, err := f.ask(ctx, ask, nil)
	if err != nil {
		return scope.Head{}, err
	}
	h := f.knows.head(&a)
	if len(a.Body) > 0 || a.Failure == "" {
		if err := canon.Decode(a.Body, out); err != nil {
			return h, fmt.Errorf("node: an answer of scope %q: %w", f.genesis.Prefix(), err)
		}
	}
	return h, scope.Failure(a.Failure)
}

// look carries out a transaction that only reads, as of a revision; 0: the newest.
func (f *foreign) look(ctx context.Context, t *scope.Txn, linearizable bool, at int64) (l Looked, head scope.Head, err error) {
	head, err = f.say(ctx, ForeignAsk{Kind: ForeignLook, Newest: linearizable, At: at, Body: canon.Encode(t)}, &l)
	if err == nil {
		err = l.wrong(t)
	}
	if err != nil {
		return Looked{}, head, err
	}
	l.Revision = head.Revision
	for i := range l.Responses {
		l.Responses[i].Range.Revision = head.Revision
	}
	return l, head, err
}

// rangeOf reads the keys [key, end), in the sense of scope.Op.
func (f *foreign) rangeOf(ctx context.Context, key, end []byte, r scope.Range, linearizable bool) (scope.RangeResult, scope.Head, error) {
	t := scope.Txn{Success: []scope.Op{{Kind: scope.OpRange, Key: key, End: end, Range: &r}}}
	l, head, err := f.look(ctx, &t, linearizable, r.Revision)
	if err != nil {
		return scope.RangeResult{}, head, err
	}
	return l.Responses[0].Range, head, nil
}

// prove is a proof of the newest change of a key, which was verified.
func (f *foreign) prove(ctx context.Context, key []byte) (p *scope.KeyProof, head scope.Head, err error) {
	a, err := f.ask(ctx, ForeignAsk{Kind: ForeignProve, Newest: true, Body: key}, func(body []byte) error {
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
	return p, f.knows.head(&ForeignAnswer{Epoch: h.Epoch, Height: h.Height, Time: h.Time}), nil
}

func (f *foreign) resolve(ctx context.Context, key []byte, version int64, linearizable bool) (r Resolved, head scope.Head, err error) {
	head, err = f.say(ctx, ForeignAsk{Kind: ForeignResolve, Newest: linearizable, Body: canon.Encode(ForeignName{Key: key, Version: version})}, &r)
	return r, head, err
}

// foreignPast asks what happened to the object that a key names.
type foreignPast struct {
	_     struct{} `cbor:",toarray"`
	Key   []byte
	Limit int64
}

type foreignDeeds struct {
	_    struct{} `cbor:",toarray"`
	All  []foreignDeed
	More bool
}

// foreignDeed is a Deed.
type foreignDeed struct {
	_       struct{} `cbor:",toarray"`
	Entry   lineage.Entry
	Index   int64
	Block   aweigh.Hash
	Time    aweigh.Instant
	Version int64
}

// foreignEntries bounds the entries in one answer.
const foreignEntries = 200

func (n *Part) historyForeign(ctx context.Context, v *View, x foreignPast) ([]byte, error) {
	deeds, more, err := n.past(ctx, v, x.Key, int(x.Limit))
	if err != nil {
		return nil, err
	}
	out := foreignDeeds{More: more}
	for i := range deeds {
		d := &deeds[i]
		out.All = append(out.All, foreignDeed{Entry: d.Entry, Index: d.Index, Block: d.Block, Time: d.Time, Version: d.Version})
	}
	return canon.Encode(out), nil
}

func (f *foreign) lineage(ctx context.Context, key []byte, limit int) (deeds []Deed, more bool, head scope.Head, err error) {
	var got foreignDeeds
	head, err = f.say(ctx, ForeignAsk{Kind: ForeignHistory, Newest: true, Body: canon.Encode(foreignPast{Key: key, Limit: int64(min(limit, foreignEntries))})}, &got)
	for i := range got.All {
		d := &got.All[i]
		deeds = append(deeds, Deed{Entry: d.Entry, Index: d.Index, Block: d.Block, Time: d.Time, Version: d.Version})
	}
	return deeds, got.More, head, err
}

// foreignQuery is an ActionQuery.
type foreignQuery struct {
	_      struct{} `cbor:",toarray"`
	Verb   string
	Key    []byte
	Caller aweigh.Hash
	Try    *action.Rule
}

// foreignSaid is a Said of the scope that is asked.
type foreignSaid struct {
	_                struct{} `cbor:",toarray"`
	Decides, Allowed bool
	Class            uint8
	Rule, Why        string
}

func (n *Part) judgeForeign(ctx context.Context, p Peer, ask ForeignAsk, a *ForeignAnswer) ([]byte, error) {
	var q foreignQuery
	err := canon.Decode(ask.Body, &q)
	if err == nil {
		err = action.CheckVerb(q.Verb)
	}
	if err == nil && q.Try != nil { // rules of the asker's, which are compiled
		err = n.pays(ctx, p, foreignBlock, 0)
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
	a.said(&head)
	if err := v.Close(); err != nil {
		return nil, err
	}
	s, _, err := n.judge(ctx, ActionQuery{Verb: q.Verb, Key: q.Key, Caller: q.Caller, Try: q.Try}, false)
	return canon.Encode(foreignSaid{Decides: s.Decides, Allowed: s.Allowed, Class: uint8(s.Class), Rule: s.Rule, Why: s.Why}), err
}

// judge is what the scope says to a verb; next is where the key went, if it did.
func (f *foreign) judge(ctx context.Context, q ActionQuery, linearizable bool) (s Said, next *scope.Delegation, err error) {
	var got foreignSaid
	ask := ForeignAsk{Kind: ForeignJudge, Newest: linearizable, Body: canon.Encode(foreignQuery{Verb: q.Verb, Key: q.Key, Caller: q.Caller, Try: q.Try})}
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
		if err := f.learn(ctx, Keys(q.Key)); err != nil {
			return s, nil, err
		}
		if given = scope.Touching(f.delegations(), q.Key, nil); len(given) == 0 {
			return s, nil, scope.ErrElsewhere
		}
	}
	return s, &given[0], nil
}

// outcome is what became of a mutation in the scope, if that is on record.
func (f *foreign) outcome(ctx context.Context, id aweigh.Hash) (r Receipt, known bool, err error) {
	a, err := f.ask(ctx, ForeignAsk{Kind: ForeignOutcome, Newest: true, Body: id[:]}, nil)
	if err != nil || len(a.Body) == 0 {
		return r, false, err
	}
	r, err = f.receipt(a.Body, id)
	return r, err == nil, err
}

// mutation is a request of this node's, once filled in.
func (f *foreign) mutation(class scope.Class, content []byte, once Once) scope.Mutation {
	return scope.Mutation{
		Scope: f.id, Class: class, Author: f.of.author, Content: content,
		Justification: once.Justification, Nonce: once.Nonce, ValidUntil: once.ValidUntil,
	}
}

// reach is the weight of the anchors that this node is connected with, and what a decision
// needs.
func (f *foreign) reach() (weight, needed uint64) {
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

// foreignReserve is the most that a node reserves in a scope that it does not hold: anchors take no more of a stranger at
// once, the mutation's form included.
const foreignReserve = 18_000

// propose has the scope decide on something in this node's name, and waits until enough of
// its anchors say what became of it.
func (f *foreign) propose(ctx context.Context, class scope.Class, content []byte, once Once) (r Receipt, err error) {
	ctx, cancel := f.of.deadline(ctx)
	defer cancel()
	policy := &f.known().Policy
	if paced(class) {
		if err := f.pace.wait(ctx, 1, policy, f.genesis.Prefix()); err != nil {
			return r, err
		}
	}
	m := f.mutation(class, content, once)
	for reserve := int64(0); ; reserve = max(4*reserve, 1024) { // this node does not know what the scope holds
		if r, err = f.attempt(ctx, m, reserve); err != nil || r.Code != scope.Exceeded {
			return r, err
		}
		if max(4*reserve, 1024) <= foreignReserve {
			continue
		}
		if !once.drawn { // as Part.proposeAt
			return r, f.undecided(scope.ErrTooMuch, &m)
		}
		return r, scope.ErrTooMuch
	}
}

// attempt hands a mutation in with a reserve, and waits for what becomes of it.
func (f *foreign) attempt(ctx context.Context, m scope.Mutation, reserve int64) (r Receipt, err error) {
	b, err := scope.SignReserving(reserve, f.of.cfg.Identity, f.known().Policy.Limits, m)
	if err != nil {
		return r, err
	}
	id := b.Mutations()[0].ID
	begin := time.Now()
	a, err := f.ask(ctx, ForeignAsk{Kind: ForeignSubmit, Body: b.Raw()}, nil)
	if err != nil {
		return r, f.undecided(err, &b.Mutations()[0].Mutation)
	}
	switch {
	case a.Failure == new(ExpiredError).Error():
		return r, &ExpiredError{Time: f.time()}
	case a.Failure != "":
		return r, fmt.Errorf("%w: %s", ErrNotTaken, a.Failure)
	}
	f.of.measured.commits.since(begin)
	return f.receipt(a.Body, id)
}

func (f *foreign) undecided(cause error, m *scope.Mutation) error {
	u := &UndecidedError{
		Mutation: scope.ID(m.Encode()), Prefix: f.genesis.Prefix(), ValidUntil: m.ValidUntil, Cause: cause,
	}
	u.Reachable, u.Needed = f.reach()
	return u
}

// receipt is that of a mutation, in an answer.
func (f *foreign) receipt(body []byte, id aweigh.Hash) (r Receipt, err error) {
	all, err := DecodeReceipts(body, f.id)
	if err == nil && (len(all) != 1 || all[0].Mutation != id) {
		err = errors.New("it is about something else")
	}
	if err != nil {
		return r, fmt.Errorf("node: the receipt of scope %q: %w", f.genesis.Prefix(), err)
	}
	return all[0], nil
}
