package scope

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/votes"
)

// countedMotion is an open motion on keys, by its own record.
type countedMotion struct {
	id               votes.MotionID
	by, author       aweigh.Hash // that signed it; and that signed the first grant, if there are grants
	opened, deadline aweigh.Instant
	bytes            int64
	due              bool
}

// roomOracle decides by the words of decision 0041 alone which motions have room.
type roomOracle struct {
	*assembly
	t     *rapid.T
	known map[aweigh.Hash]bool
}

// recount reads all records of motions, compares the docket with them, and gives the open ones by deadline.
func (o *roomOracle) recount() (open []countedMotion) {
	o.t.Helper()
	var d MotionIndex
	prefix := o.state.space.at(atMotion)
	err := o.r.Scan(prefix, kv.PrefixEnd(prefix), false, func(k, raw []byte) bool {
		var rec motionRecord
		var m Mutation
		if err := canon.Decode(raw, &rec); err != nil {
			o.t.Fatalf("a record: %v", err)
		}
		if err := m.decode(rec.Motion.Mutation); err != nil {
			o.t.Fatalf("a mutation: %v", err)
		}
		c := countedMotion{
			id: votes.MotionID(k[len(prefix):]), by: m.Author, author: m.Author, opened: rec.Motion.Opened, deadline: rec.Motion.Deadline,
			bytes: int64(len((&motionRecord{Motion: rec.Motion}).encode())), due: rec.Due > 0,
		}
		if len(m.Grants) > 0 {
			var g Grant
			if err := canon.Decode(m.Grants[0], &g); err != nil {
				o.t.Fatalf("a grant: %v", err)
			}
			c.author = g.By.ID()
		}
		if m.Class != Govern {
			d.Bytes += c.bytes
		}
		if rec.Ending != nil {
			d.Closed++
			return true
		}
		if d.Open++; c.due {
			d.Due++
		} else {
			d.Next = aweigh.Earliest(d.Next, c.deadline)
		}
		if m.Class != Govern {
			open = append(open, c)
		}
		return true
	})
	if err != nil {
		o.t.Fatalf("reading motions: %v", err)
	}
	if have := o.state.Head().Docket; have != d {
		o.t.Fatalf("the docket says %+v, and the records %+v", have, d)
	}
	slices.SortFunc(open, func(a, b countedMotion) int {
		return cmp.Or(cmp.Compare(a.deadline, b.deadline), bytes.Compare(a.id[:], b.id[:]))
	})
	return open
}

// sum is how many motions there are, and their bytes, of those that of picks.
func sum(open []countedMotion, of func(*countedMotion) bool) (n, bytes int64) {
	for i := range open {
		if of(&open[i]) {
			n++
			bytes += open[i].bytes
		}
	}
	return n, bytes
}

// ready ends an epoch that is due: its last block is empty.
func (o *roomOracle) ready() {
	for {
		e, err := o.state.Epoch()
		if err != nil {
			o.t.Fatalf("reading the epoch: %v", err)
		}
		h := Header{Epoch: e.Number, View: o.state.Head().View + 1, Time: o.now.Add(time.Second)}
		if o.state.Head().Epoch != e.Number {
			h.View = 1
		}
		_, full, err := o.state.Claim(h)
		if err != nil {
			o.t.Fatalf("claim: %v", err)
		}
		if full {
			return
		}
		o.step()
	}
}

func (o *roomOracle) unlisted(m *countedMotion) bool { return !o.known[m.author] }

// bounded holds the open motions to the bounds of each share.
func (o *roomOracle) bounded(open []countedMotion) {
	o.t.Helper()
	within := func(what string, motions, bytes int64, of func(*countedMotion) bool) {
		if n, b := sum(open, of); n > motions || b > bytes {
			o.t.Fatalf("%s have %d open motions of %d bytes", what, n, b)
		}
	}
	within("all", 1000, 64<<20, func(*countedMotion) bool { return true })
	within("unlisted authors", 250, 16<<20, o.unlisted)
	for author := range o.known { // order-free
		within(author.Short(), 250, 16<<20, func(m *countedMotion) bool { return m.author == author })
	}
}

// takes reports whether a motion finds room, and which ones give way to it.
func (o *roomOracle) takes(open []countedMotion, m countedMotion, now aweigh.Instant) (
	left []countedMotion, way []votes.MotionID, ok bool,
) {
	left = slices.Clone(open)
	mine := func(x *countedMotion) bool { return x.author == m.author }
	drop := func(i int) {
		way = append(way, left[i].id)
		left = slices.Delete(left, i, i+1)
	}
	first := func(of func(*countedMotion) bool) int {
		return slices.IndexFunc(left, func(x countedMotion) bool { return !x.due && of(&x) })
	}
	for {
		n, b := sum(left, o.unlisted)
		own, ownBytes := sum(left, mine)
		all, allBytes := sum(left, func(*countedMotion) bool { return true })
		foreign := !o.known[m.author]
		i := first(o.unlisted)
		switch {
		case foreign && (n+1 > 250 || b+m.bytes > 16<<20):
			if i < 0 || now.Sub(left[i].opened) < 10*time.Minute {
				return open, way, false
			}
			drop(i)
		case !foreign && (own+1 > 250 || ownBytes+m.bytes > 16<<20):
			return open, way, false
		case all+1 <= 1000 && allBytes+m.bytes <= 64<<20:
			return append(left, m), way, true
		case foreign:
			return open, way, false
		case i >= 0:
			drop(i)
		default: // of the author with the most, by what there is too much of
			most, of := own+1, aweigh.Hash{}
			for a := range o.known {
				if k, _ := sum(left, func(x *countedMotion) bool { return x.author == a }); k > most {
					most, of = k, a
				}
			}
			if of.IsZero() {
				return open, way, false
			}
			drop(first(func(x *countedMotion) bool { return x.author == of }))
		}
	}
}

// TestRoomOfMotionsIsRecounted draws worlds in which unlisted authors, anchors, an approver, a listed author and a
// holder of its grant open motions, vote on them and withdraw them while time passes. After each block all records are
// counted again and compared with the docket, and the motions that find room and those that give way are the ones that
// decision 0041 determines.
func TestRoomOfMotionsIsRecounted(t *testing.T) {
	testshort.Skip(t)
	refused, gave := 0, 0
	many := checkSlow(t, func(t *rapid.T) {
		approver, listed, holder := testKey(t, 50), testKey(t, 51), testKey(t, 52)
		w := newAssembly(t, 4, func(p *Policy) {
			p.Authors = []Author{{Name: "all", Who: Anyone}, {Name: "listed", Who: OneKey, Key: listed.Public()}}
			p.Approvals[0].Window = time.Hour
			p.Approvals[0].Approvers = []Approver{{Name: "judith", Key: approver.Public(), Share: 1}}
		})
		w.skip = true
		o := &roomOracle{w, t, make(map[aweigh.Hash]bool)}
		authors := []votes.PrivateKey{testKey(t, 60), testKey(t, 61), approver, w.keys[0], w.keys[1], listed, holder}
		for _, k := range authors[2:6] {
			o.known[k.Public().ID()] = true
		}
		grant, err := SignGrant(listed.Signer(), Grant{Scope: w.g.Hash(), To: holder.Public(), Name: "ci", NotAfter: w.now.Add(1000 * time.Hour)})
		if err != nil {
			t.Fatalf("granting: %v", err)
		}
		number := 0
		open := func(by votes.PrivateKey, count, size int) {
			w.author = by
			o.ready()
			w.now = w.now.Add(time.Second)
			var muts []Mutation
			for range count {
				number++
				m := w.put(fmt.Sprintf("/secrets/%06d", number), strings.Repeat("x", size))
				if by.Public().ID() == holder.Public().ID() {
					m.Grants = [][]byte{grant.Encode()}
				}
				muts = append(muts, m)
			}
			before := o.recount()
			for n := 0; n < expiredAtOnce && len(before) > 0; n++ {
				if i := slices.IndexFunc(before, func(m countedMotion) bool { return !m.due }); i >= 0 && before[i].deadline <= w.now {
					before = slices.Delete(before, i, i+1)
				}
			}
			payer := by.Public().ID()
			if payer == holder.Public().ID() {
				payer = listed.Public().ID()
			}
			res := w.execute(w.block(w.sign(muts...)))
			after := o.recount()
			o.bounded(after)
			var way []votes.MotionID
			for _, out := range res.Outcomes {
				m := countedMotion{
					id: out.Mutation, author: payer, opened: w.now, deadline: w.now.Add(time.Hour),
					bytes: int64(size),
				}
				if rec, ok, err := w.state.motion(out.Mutation); err != nil {
					t.Fatalf("reading a motion: %v", err)
				} else if ok {
					m.bytes = int64(len((&motionRecord{Motion: rec.Motion}).encode()))
				} else if size > 1000 {
					m.bytes += 2000 // about: it has no record
				}
				var more []votes.MotionID
				var ok bool
				before, more, ok = o.takes(before, m, w.now)
				if way = append(way, more...); ok != (out.Code == Pending) {
					t.Fatalf("a motion of %d bytes beside %d others is %s: %s", m.bytes, len(before), out.Code, out.Reason)
				}
				if !ok {
					refused++
				}
			}
			for _, id := range way {
				if got := w.fate(id); got != "expired: "+gaveWay {
					t.Fatalf("a motion that gives way is %s", got)
				}
			}
			if gave += len(way); len(before) != len(after) {
				t.Fatalf("%d motions are open, want %d", len(after), len(before))
			}
		}
		author := rapid.SampledFrom(authors)
		for _, by := range authors[1:] {
			for left := rapid.SampledFrom([]int{0, 100, 245, 250}).Draw(t, "fill"); left > 0; left -= 50 {
				open(by, min(left, 50), 1)
			}
		}
		for range rapid.IntRange(3, 12).Draw(t, "steps") {
			switch rapid.IntRange(0, 6).Draw(t, "step") {
			case 0: // some get their approvals, or cannot have them any more
				o.ready()
				var ballots []votes.MotionBallot
				all := o.recount()
				for _, m := range all[:min(len(all), 5)] {
					choice := votes.Choice(rapid.IntRange(1, 2).Draw(t, "choice"))
					for _, k := range append([]votes.PrivateKey{approver}, w.keys...) { // without the approver nothing is carried
						ballots = append(ballots, w.ballot(k, m.id, choice))
					}
				}
				w.now = w.now.Add(time.Second)
				w.execute(w.carrying(ballots))
			case 1:
				if all := o.recount(); len(all) > 0 {
					m := all[rapid.IntRange(0, len(all)-1).Draw(t, "withdrawn")]
					o.ready()
					for _, k := range authors {
						if w.author = k; k.Public().ID() == m.by {
							w.step(w.mutation(Withdraw, Withdrawal{Motion: m.id}))
						}
					}
				}
			case 2:
				later := rapid.SampledFrom([]time.Duration{time.Minute, 10 * time.Minute, time.Hour, 2 * keptFor})
				w.now = w.now.Add(later.Draw(t, "later"))
				w.step()
			case 3: // large ones
				open(author.Draw(t, "author"), rapid.IntRange(1, 6).Draw(t, "large"), 500_000)
			default:
				open(author.Draw(t, "author"), rapid.IntRange(1, 50).Draw(t, "count"), 1)
			}
			o.bounded(o.recount())
		}
		w.checkDigest()
	})
	if many && (refused == 0 || gave == 0) {
		t.Errorf("%d motions were refused, and %d gave way", refused, gave)
	}
}
