package scope

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/lineage"
	"github.com/aweigh/aweigh/votes"
)

// relog makes the members of an island certify another lineage: what bend makes of the entries, and of what they show.
func (c *isle) relog(src *IslandSource, re *Rejoining, bend func(i int, e *lineage.Entry, v *KeyValue)) {
	c.t.Helper()
	r := kv.NewOverlay(nothing{})
	log := lineage.Open(r, []byte("x"), 0)
	first := int64(-1)
	for at := int64(0); at < src.Final.Header.LineageSize; at++ {
		e, _, err := src.State.Lineage().Entry(at)
		if err != nil {
			c.t.Fatalf("%v", err)
		}
		for i := range re.Changes {
			if p := &re.Changes[i]; p.Place.Index == at {
				bend(i, &e, &p.Value)
				p.Entry, first = e, max(first, at)
			}
		}
		ops, err := log.Append(e)
		if err != nil {
			c.t.Fatalf("%v", err)
		}
		r.Apply(ops...)
		log = lineage.Open(r, []byte("x"), at+1)
	}
	head, err := log.Head()
	if err != nil {
		c.t.Fatalf("%v", err)
	}
	h := src.Final.Header
	h.LineageSize, h.LineageRoot = head.Size, head.Root
	re.Final = Finality{Header: h, Certificate: c.certificate(c.epoch(), h)}
	for i := range re.Changes {
		p := &re.Changes[i]
		if p.Place, err = log.Prove(p.Place.Index, head.Size); err != nil {
			c.t.Fatalf("%v", err)
		}
	}
}

// TestIslandsChangeWhatTheirAuthorsAskedFor: members of which enough lie to decide in the island certify changes that
// no author signed. The scope takes none of them.
func TestIslandsChangeWhatTheirAuthorsAskedFor(t *testing.T) {
	r := newShip(t)
	r.one(r.ops(put("/ship/log", "1"), put("/ship/gone", "x")))
	c := r.isle("a", "b")
	c.do(c.ops(put("/ship/log", "2"), del("/ship/gone", "")))
	src := c.source()
	for name, bend := range map[string]func(i int, e *lineage.Entry, v *KeyValue){ // order-free: each is checked alone
		"as it was": func(int, *lineage.Entry, *KeyValue) {},
		"another value": func(i int, e *lineage.Entry, v *KeyValue) {
			if i == 0 {
				v.Value = []byte("forged")
				e.Posterior = v.Digest()
			}
		},
		"another key put": func(i int, e *lineage.Entry, v *KeyValue) {
			if i == 0 {
				e.Key = []byte("/ship/other")
				v.Key = e.Key
				e.Posterior = v.Digest()
			}
		},
		"another key deleted": func(i int, e *lineage.Entry, _ *KeyValue) {
			if i == 1 {
				e.Key = []byte("/ship/other")
			}
		},
		"a put left out": func(i int, e *lineage.Entry, _ *KeyValue) {
			if i == 0 {
				e.Class, e.Object, e.Posterior, e.Reason = lineage.Failed, aweigh.UID{}, aweigh.Hash{}, "so they say"
			}
		},
	} {
		whole, err := src.Next(c.g.Descent.Keys, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		c.relog(src, &whole, bend)
		_, err = Sign(r.names["a"], r.g.Policy.Limits, r.mutation(Rejoin, whole))
		if refused := err != nil && strings.Contains(err.Error(), "no change that its author asked for"); refused == (name == "as it was") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestP54MutationsOfIslandsActOnce: members of which enough lie certify that a mutation was executed once more, after
// others. The scope takes it once, in one part or in several.
func TestP54MutationsOfIslandsActOnce(t *testing.T) {
	for name, parts := range map[string][]int{"at once": {3}, "one by one": {1, 2, 3}} { // order-free: each is checked alone
		r := newShip(t)
		r.one(r.put("/ship/log", "1"))
		c := r.isle("a", "b")
		c.do(c.put("/ship/log", "2"))
		c.do(c.put("/ship/log", "3"))
		c.do(c.put("/ship/log", "4"))
		src := c.source()
		re, err := src.Next(c.g.Descent.Keys, 1<<20)
		if err != nil || len(re.Changes) != 3 {
			t.Fatalf("%d changes, %v", len(re.Changes), err)
		}
		first := re.Changes[0]
		c.relog(src, &re, func(i int, e *lineage.Entry, v *KeyValue) {
			if i == 2 {
				e.Mutation, v.Value = first.Entry.Mutation, first.Value.Value
				e.Posterior = v.Digest()
			}
		})
		if out := r.rejoin("a", src.Announcement()); out.Code != Applied {
			t.Fatalf("%s: %s %s", name, out.Code, out.Reason)
		}
		r.now = r.now.Add(10 * time.Second)
		from := 0
		for _, to := range parts {
			part := re
			part.Changes, part.After = re.Changes[from:to], nil
			if to < len(re.Changes) {
				part.After = []Provisional{{Entry: re.Changes[to].Entry, Place: re.Changes[to].Place}}
			}
			if out := r.rejoin("a", part); out.Code != Applied {
				t.Fatalf("%s: %s %s", name, out.Code, out.Reason)
			}
			from = to
		}
		all, err := r.state.Islands()
		if got := r.reads("/ship/log"); got != "3" || err != nil || all[0].Stands != 2 || !all[0].done() {
			t.Errorf("%s: the log is %q; on record: %+v, %v", name, got, all, err)
		}
	}
}

// TestIslandsMutationsComeWhole: a member that shows a part of what a mutation of the island changed cannot make the
// scope take that part.
func TestIslandsMutationsComeWhole(t *testing.T) {
	r := newShip(t)
	r.one(r.ops(put("/ship/log", "1"), put("/ship/gone", "x")))
	c := r.isle("a", "b")
	c.do(c.ops(put("/ship/log", "2"), del("/ship/gone", "")))
	c.do(c.put("/ship/log", "3"))
	src := c.source()
	if out := r.rejoin("a", src.Announcement()); out.Code != Applied {
		t.Fatalf("%s %s", out.Code, out.Reason)
	}
	r.now = r.now.Add(10 * time.Second)
	re, err := src.Next(c.g.Descent.Keys, 1<<20)
	if err != nil || len(re.Changes) != 3 {
		t.Fatalf("%d changes, %v", len(re.Changes), err)
	}
	for n := 1; n <= 2; n++ { // a part of the first mutation
		cut := re
		cut.Changes, cut.After = re.Changes[:n], nil
		if n == 1 { // with the next one, whichever mutation it is of
			cut.After = []Provisional{{Entry: re.Changes[1].Entry, Place: re.Changes[1].Place}}
		}
		c, err := Sign(r.names["a"], r.g.Policy.Limits, r.mutation(Rejoin, cut))
		if err != nil {
			continue
		}
		if out := r.add(r.next(nil, nil, c)).Outcomes[0]; out.Code != Failed {
			t.Errorf("%d of three changes: %s %s", n, out.Code, out.Reason)
		}
	}
	if out := r.rejoin("a", re); out.Code != Applied || r.reads("/ship/gone") != "-" || r.reads("/ship/log") != "3" {
		t.Errorf("%s %s: the log is %q, with %q", out.Code, out.Reason, r.reads("/ship/log"), r.reads("/ship/gone"))
	}
}

// TestIslandsMissNoDeletionThatWasCompacted: a key that the island found, and that the scope deleted, stays deleted,
// also where a compaction has left no record of the deletion.
func TestIslandsMissNoDeletionThatWasCompacted(t *testing.T) {
	r := newShip(t)
	r.one(r.ops(put("/ship/log", "1"), put("/ship/lock", "mine")))
	c := r.isle("a", "b")
	c.do(c.put("/ship/log", "2"))
	locked := Compare{Key: []byte("/ship/lock"), Target: OnVersion, Relation: Equal, Number: 1}
	c.do(c.txn(Txn{Compare: []Compare{locked}, Success: []Op{put("/ship/work", "done")}}))
	c.do(c.put("/ship/new", "n"))
	r.one(r.ops(del("/ship/log", ""), del("/ship/lock", "")))
	r.one(r.put("/land/x", "1"))
	r.one(r.compaction(r.state.Head().Revision))
	r.step()
	if _, ok, err := r.state.upTo([]byte("/ship/log"), 1<<62); ok || err != nil {
		t.Fatalf("the deletion is on record: %v, %v", ok, err)
	}
	r.takes(c, 1)
	if a, b, n := r.reads("/ship/log"), r.reads("/ship/work"), r.reads("/ship/new"); a != "-" || b != "-" || n != "n" {
		t.Errorf("the log is %q, and the work %q; what is new is %q", a, b, n)
	}
	aside := 0
	err := r.state.AsideOf(c.g.Hash(), func(_ []byte, is SetAside) bool {
		if aside++; is.Reason != errChanged.Error() {
			t.Errorf("set aside: %q", is.Reason)
		}
		return true
	})
	if err != nil || aside != 2 {
		t.Errorf("%d keys are set aside, %v", aside, err)
	}
}

// TestIslandsHaveTheTermsOfTheirTime: anchors of an epoch with a partition cannot make an island of one without.
func TestIslandsHaveTheTermsOfTheirTime(t *testing.T) {
	r := newRealm(t, func(p *Policy) { p.EpochBlocks, p.Partitions = 12, []Partition{shipPartition()} })
	r.turn()
	r.add(r.next(nil, nil, r.world.sign(r.put("/ship/log", "1"))...))
	c := r.isle("a", "b")
	p := r.epoch().Policy
	p.Partitions = nil
	for _, name := range []string{"a", "b", "c"} {
		r.approve(name, Decision{Kind: SetPolicy, Policy: &p})
	}
	r.turn()
	r.add(r.next(nil, nil))
	re := c.source().Announcement()
	for later, want := range map[aweigh.Height]Code{0: Applied, r.state.Head().Height: Failed} { // order-free: each is checked alone
		if later > 0 {
			d := *c.g.Descent
			d.Height, d.Block = later, r.state.Head().Block
			g := c.g
			g.Descent = &d
			e, err := g.Epoch()
			if err != nil {
				t.Fatal(err)
			}
			h := re.Final.Header
			h.Scope = g.Hash()
			re.Genesis, re.Final = g.Encode(), Finality{Header: h, Certificate: c.certificate(e, h)}
		} else {
			re = c.source().Announcement()
		}
		if out := r.rejoin("a", re); out.Code != want {
			t.Errorf("of height %d: %s %q", later, out.Code, out.Reason)
		}
	}
}

// TestIslandsBringBackWhatFailed: a request of another class that failed in an island is passed over.
func TestIslandsBringBackWhatFailed(t *testing.T) {
	r := newShip(t)
	r.one(r.put("/ship/log", "1"))
	c := r.isle("a", "b")
	c.do(c.compaction(5), c.mutation(Lease, LeaseRequest{Kind: LeaseGrant, IDs: []int64{1}, TTL: 10}))
	c.do(c.put("/ship/log", "2"))
	r.takes(c, 1)
	if got := r.reads("/ship/log"); got != "2" {
		t.Errorf("the log is %q", got)
	}
}

// TestP54WhatWasSetAsideCanBeVotedOn: a patient write of keys of a partition, which takes no approval otherwise, opens
// a motion.
func TestP54WhatWasSetAsideCanBeVotedOn(t *testing.T) {
	r := newShip(t)
	m := r.put("/ship/log", "1")
	m.Patient = true
	if out := r.step(m).Outcomes[0]; out.Code != Pending {
		t.Errorf("%s %s", out.Code, out.Reason)
	}
	mo, end, err := r.state.Motion(votes.MotionID(ID(withAuthor(m, r.author).Encode())))
	if err != nil || mo == nil || end != nil || mo.Approval.Window != time.Hour {
		t.Errorf("%+v, %+v, %v", mo, end, err)
	}
	if err := mo.asked(r.epoch()); err != nil {
		t.Errorf("the motion cannot be proven: %v", err)
	}
	for name, m := range map[string]Mutation{"elsewhere": r.put("/land/x", "1"), "here and there": r.ops(put("/ship/log", "1"), put("/land/x", "1"))} { // order-free
		m.Patient = true
		if out := r.step(m).Outcomes[0]; out.Code != Failed || !errors.Is(Failure(out.Reason), ErrPatient) {
			t.Errorf("%s: %s %s", name, out.Code, out.Reason)
		}
	}
}

func withAuthor(m Mutation, key votes.PrivateKey) Mutation {
	m.Author = key.Public().ID()
	return m
}

// TestIslandsHaveNoLeases: a key of an island that has a lease in its scope stays there when that ends.
func TestIslandsHaveNoLeases(t *testing.T) {
	r := newShip(t)
	r.one(r.mutation(Lease, LeaseRequest{Kind: LeaseGrant, IDs: []int64{1}, TTL: 10}))
	r.one(r.ops(leased("/ship/log", "1", 1)))
	if got := r.isle("a", "b").live()["/ship/log"]; got.Lease != 0 || string(got.Value) != "1" {
		t.Errorf("the island has %+v", got)
	}
}

// TestIslandsRejoinByTheEndOfAnEpoch: the newest block of an island may be the last one of an epoch. The handover after
// it then leads past it.
func TestIslandsRejoinByTheEndOfAnEpoch(t *testing.T) {
	r := newShip(t)
	r.one(r.put("/ship/log", "1"))
	c := r.isle("a", "b")
	c.do(c.put("/ship/log", "2"))
	src := c.source()
	src.Handovers = []Handover{{Final: src.Final, Terms: c.epoch().Terms()}} // as if that block ended the epoch
	if out := r.rejoin("a", src.Announcement()); out.Code != Applied {
		t.Errorf("%s %s", out.Code, out.Reason)
	}
}

// fork is the same island, as members that certify two histories have it: it begins as the island does.
func (c *isle) fork() *isle {
	w := *c.world
	w.flat = kv.NewOverlay(c.flat)
	w.r = w.flat
	w.nonce += 1 << 30
	r := *c.realm
	r.world = &w
	w.open()
	return &isle{realm: &r, blocks: make(map[aweigh.Height]*Block), terms: c.terms}
}

// TestP54ForksAreRefused: once the scope has taken a part of what an island decided, it takes no continuation of
// another history, which the same members certified.
func TestP54ForksAreRefused(t *testing.T) {
	for name, more := range map[string]bool{"to the end": false, "in parts": true} { // order-free: each is checked alone
		t.Run(name, func(t *testing.T) {
			r := newShip(t)
			r.one(r.ops(put("/ship/log", "1")))
			c := r.isle("a", "b")
			other := c.fork()
			parts := func(c *isle, mark string) (all []Rejoining, src *IslandSource) {
				c.do(c.put("/ship/log", mark))
				c.do(c.put("/ship/x", mark))
				if more || mark == "fork" {
					c.do(c.put("/ship/y", mark))
				}
				src = c.source()
				for from := c.g.Descent.Keys; from < src.Final.Header.LineageSize; from++ {
					re, err := src.Next(from, 1)
					if err != nil {
						t.Fatal(err)
					}
					all = append(all, re)
				}
				return all, src
			}
			forked, fork := parts(other, "fork") // first: the fork's store lies over the island's
			taken, src := parts(c, "island")
			for _, s := range []*IslandSource{src, fork} {
				r.rejoin("a", s.Announcement())
			}
			r.now = r.now.Add(10 * time.Second)
			for i, re := range taken[:2] {
				if out := r.rejoin("a", re); out.Code != Applied {
					t.Fatalf("part %d: %s %s", i, out.Code, out.Reason)
				}
			}
			if out := r.rejoin("a", forked[2]); out.Code != Failed || out.Reason != reason(ErrIslandForked) {
				t.Errorf("another history: %s %q", out.Code, out.Reason)
			}
			if got := r.reads("/ship/y"); got != "-" {
				t.Errorf("the scope took %q of another history", got)
			}
			if more {
				if out := r.rejoin("a", taken[2]); out.Code != Applied {
					t.Errorf("the same history: %s %s", out.Code, out.Reason)
				}
			}
		})
	}
}

// TestIslandsHoldNoProofs: a bundle of an island that has a proof is refused before the proof is looked at.
func TestIslandsHoldNoProofs(t *testing.T) {
	for class, refused := range map[Class]bool{Write: false, Rejoin: true, Bring: true, Carry: true} { // order-free
		m := Mutation{Class: class, Nonce: make([]byte, 8), ValidUntil: 1}
		if err := noProofs(canon.Encode(Bundle{Mutations: [][]byte{m.Encode()}, Signature: make([]byte, 64)})); (err != nil) != refused {
			t.Errorf("%s: %v", class, err)
		}
	}
}
