package sim

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/internal/must"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/node/referral"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/store"
	"github.com/aweigh/aweigh/votes"
)

// visitor is a node that holds no scope, and knows the network's genesis alone. It reaches all by
// referral, as package node does (referral.Scope, referral.Inquiry).
type visitor struct {
	guest
	author votes.PrivateKey
	store  *store.Mem
	known  map[aweigh.ScopeID]*referral.Scope
	told   map[string]time.Duration // of its last answer that may be old, by scope and subject
	heard  map[aweigh.ScopeID]int64 // highest revision of its answers
	open   int                      // errands
}

// visitors are how many there are, if there is something for them to do, and visitsAtOnce how many
// errands each has open: more would make the order in time that is looked for hard to find.
const (
	visitors     = 2
	visitsAtOnce = 2
)

// startVisitors makes visitors ask as the scenario sets, until Stop.
func (w *World) startVisitors(hosts []*Node) {
	load := w.Scenario.Load
	if load.Visits == 0 {
		return
	}
	var all []*visitor
	for i := range visitors {
		v := &visitor{
			guest: guest{w: w, id: i, beside: hosts[i%len(hosts)].Index, rand: rand.New(rand.NewPCG(w.Scenario.Seed, uint64(50+i)))},
			store: store.NewMem(), known: make(map[aweigh.ScopeID]*referral.Scope), told: make(map[string]time.Duration), heard: make(map[aweigh.ScopeID]int64),
		}
		seed := make([]byte, 32)
		binary.BigEndian.PutUint64(seed, v.rand.Uint64())
		key, err := votes.KeyFromSeed(votes.Ed25519, seed)
		must.OK(err, "making a key")
		v.author = key.Telling(w.made.add)
		root, err := referral.NewScope(w.Genesis, v.store)
		must.OK(err, "reading the genesis")
		v.known[w.id] = root
		all = append(all, v)
	}
	for i := range load.Visits {
		v := all[i%len(all)]
		w.at(w.drawTime(v.rand), v.visit)
	}
}

// visit asks for something.
func (v *visitor) visit() {
	w := v.w
	if !w.firing || v.open == visitsAtOnce {
		return
	}
	key := w.keyName(v.rand.IntN(w.Scenario.Load.Keys))
	switch v.rand.IntN(8) {
	case 0, 1, 2:
		v.read(key)
	case 3, 4:
		v.glance(key)
	case 5:
		v.resolve(w.aliasName(v.rand.IntN(aliasCount)))
	default:
		v.write(key)
	}
}

// errand is one thing that a visitor wants, of the scope that decides about a key.
type errand struct {
	*visitor
	key   string
	until aweigh.Instant
	ask   func(*referral.Scope) referral.Question
	moved func(referral.Answer) bool // the answer says that another scope decides
	done  func(f *referral.Scope, a referral.Answer, cached bool)
}

// begin begins an errand.
func (e errand) begin() {
	open, done := true, e.done
	end := func() {
		if open {
			open = false
			e.open--
		}
	}
	e.open++
	e.done = func(f *referral.Scope, a referral.Answer, cached bool) {
		end()
		done(f, a, cached)
	}
	e.w.at(e.until.Sub(e.w.now), end)
	e.run()
}

// run asks the scope that decides, as far as is known, and follows referrals. It gives up after a time.
func (e errand) run() {
	f := e.deciding(e.key)
	if e.w.now >= e.until {
		return
	}
	e.inquire(f, e.ask(f), e.until, nil, func(a referral.Answer, cached bool, err error) {
		switch {
		case err != nil:
		case errors.Is(scope.Failure(a.Failure), scope.ErrElsewhere) || e.moved != nil && e.moved(a):
			e.learn(f, e)
		default:
			e.done(f, a, cached)
		}
	})
}

// deciding is the deepest scope that the visitor knows to have a key.
func (v *visitor) deciding(key string) *referral.Scope {
	f := v.known[v.w.id]
	for {
		at := scope.Touching(f.Delegations(), []byte(key), nil)
		if len(at) == 0 {
			return f
		}
		f = v.known[at[0].Child]
	}
}

// learn asks a scope for the referral for an errand's key, and continues the errand there.
func (v *visitor) learn(f *referral.Scope, e errand) {
	keys := referral.RangeList{Ranges: []referral.KeyRange{{Key: []byte(e.key)}}}
	ask := referral.Question{Kind: referral.AskReferrals, Body: canon.Encode(keys)}
	v.inquire(f, ask, e.until, func(body []byte) error { return v.referred(f, body, &keys) }, func(_ referral.Answer, _ bool, err error) {
		wait := time.Millisecond
		if err != nil { // no node can prove it yet
			wait = 50 * time.Millisecond
		}
		v.w.at(wait, e.run)
	})
}

// referred takes the referrals in an answer, if they prove themselves.
func (v *visitor) referred(f *referral.Scope, body []byte, keys *referral.RangeList) error {
	all, err := referral.DecodeReferrals(body)
	if err != nil {
		return err
	}
	given, err := f.Check(v.store, f.Epoch(), all, keys)
	if err != nil {
		return err
	}
	for i, d := range given {
		v.w.referral(v, f, d)
		if v.known[d.Child] == nil {
			if v.known[d.Child], err = referral.NewScope(all[i].Child, v.store); err != nil {
				return err
			}
		}
		f.Learn(d)
	}
	return nil
}

// looking is the question what stands under a key.
func looking(key string, newest bool) func(*referral.Scope) referral.Question {
	t := scope.Txn{Success: []scope.Op{{Kind: scope.OpRange, Key: []byte(key)}}}
	return func(*referral.Scope) referral.Question {
		return referral.Question{Kind: referral.AskLook, Newest: newest, Body: canon.Encode(t)}
	}
}

// looked is the content of the answer.
func looked(a *referral.Answer) (kv scope.KeyValue, ok bool) {
	var l referral.Looked
	if a.Failure != "" || canon.Decode(a.Body, &l) != nil || len(l.Responses) != 1 || len(l.Responses[0].Range.Kvs) != 1 {
		return kv, false
	}
	return l.Responses[0].Range.Kvs[0], true
}

// give is until when something is worth waiting for.
func (v *visitor) give() aweigh.Instant { return v.w.now.Add(v.w.Scenario.Load.Give) }

// read asks for a linearizable read.
func (v *visitor) read(key string) {
	d := &operation{client: -1 - v.id, kind: "read", key: key}
	v.w.watch.asked(d)
	errand{visitor: v, key: key, until: v.give(), ask: looking(key, true), done: func(f *referral.Scope, a referral.Answer, _ bool) {
		if a.Failure != "" { // the revision was compacted, so the key is unknown
			v.w.watch.forget(d)
			return
		}
		kv, _ := looked(&a)
		d.got = string(kv.Value)
		v.w.watch.readDone(v.w.Nodes[v.beside], d)
		v.w.visited(v, f, &a, key)
		v.w.truth(v, f, key, kv, a.Revision)
	}}.begin()
}

// glance asks for a read that may be old.
func (v *visitor) glance(key string) {
	errand{visitor: v, key: key, until: v.give(), ask: looking(key, false), done: func(f *referral.Scope, a referral.Answer, cached bool) {
		if a.Failure != "" {
			return
		}
		kv, _ := looked(&a)
		v.w.aged(v, f, &a, key, cached)
		v.w.visited(v, f, &a, key)
		v.w.truth(v, f, key, kv, a.Revision)
		if v.rand.IntN(2) == 0 && v.w.firing {
			v.w.at(time.Duration(v.rand.Int64N(int64(2*time.Second))), func() { v.glance(key) })
		}
	}}.begin()
}

// resolve asks for the object of an alias.
func (v *visitor) resolve(alias string) {
	newest := v.rand.IntN(2) == 0
	ask := func(*referral.Scope) referral.Question {
		return referral.Question{Kind: referral.AskResolve, Newest: newest, Body: canon.Encode(referral.Name{Key: []byte(alias)})}
	}
	errand{visitor: v, key: alias, until: v.give(), ask: ask, done: func(f *referral.Scope, a referral.Answer, cached bool) {
		if !newest {
			v.w.aged(v, f, &a, "alias "+alias, cached)
		}
		v.w.visited(v, f, &a, alias)
		var r referral.Resolved
		if a.Failure == "" && canon.Decode(a.Body, &r) == nil && r.Moved == nil {
			v.w.truth(v, f, alias, r.Kv, a.Revision)
		}
	}}.begin()
}

// write puts a value of its own, through several anchors at once.
func (v *visitor) write(key string) {
	w := v.w
	nonce := binary.BigEndian.AppendUint64(nil, v.rand.Uint64())
	d := &operation{client: -1 - v.id, kind: "write", key: key, value: fmt.Sprintf("%0*x", w.Scenario.Load.Value, nonce)}
	m := w.mutation(scope.Txn{Success: []scope.Op{{Kind: scope.OpPut, Key: []byte(key), Value: []byte(d.value)}}}, nonce)
	said := func(a *referral.Answer) (r machine.Receipt, ok bool) {
		all, err := referral.DecodeReceipts(a.Body, aweigh.ScopeID{})
		if err != nil || len(all) != 1 || a.Failure != "" || all[0].Mutation != d.mutation {
			return r, false
		}
		return all[0], true
	}
	errand{
		visitor: v, key: key, until: v.give(),
		ask: func(f *referral.Scope) referral.Question {
			at := w.find(f.ID())
			m.Scope = f.ID()
			b, err := scope.Sign(v.author, f.Epoch().Policy.Limits, m)
			must.OK(err, "signing a bundle")
			if id := b.Mutations()[0].ID; id != d.mutation {
				d.mutation, d.until, d.in = id, m.ValidUntil, at
				d.tried = append(d.tried, attempt{at, id})
				at.watch.asked(d)
			}
			return referral.Question{Kind: referral.AskSubmit, Body: b.Raw()}
		},
		moved: func(a referral.Answer) bool {
			r, ok := said(&a)
			return ok && handedOn(&r.Outcome)
		},
		done: func(f *referral.Scope, a referral.Answer, _ bool) {
			r, ok := said(&a)
			at := w.find(f.ID())
			at.holds(Referred, nil, ok, "a receipt of scope %q that cannot be read: %s", f.Genesis().Prefix(), a.Failure)
			if ok {
				at.watch.answered(at.Nodes[v.beside], d, machine.Reply{Mutation: r.Mutation, Outcome: &r.Outcome, Height: r.Height})
				w.watch.reach("visitor's write")
			}
		},
	}.begin()
}
