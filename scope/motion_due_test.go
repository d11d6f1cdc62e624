package scope

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/votes"
)

// costs is what it costs now to carry an open motion.
func (w *assembly) costs(t fataler, id votes.MotionID) int64 {
	t.Helper()
	mo, _, err := w.state.Motion(id)
	if err != nil || mo == nil {
		t.Fatalf("reading a motion: %v", err)
	}
	m := new(CheckedMutation)
	if err := m.open(mo.Mutation, MostLimits()); err != nil {
		t.Fatalf("its mutation: %v", err)
	}
	s, err := w.state.Begin()
	if err != nil {
		t.Fatalf("beginning: %v", err)
	}
	h := Header{Height: s.head.Height + 1, Time: s.head.Time, Policy: s.epoch.Domain().Policy}
	x := newExecution(s, &Block{Header: h})
	x.begin(m)
	const most = 1 << 40
	x.purse = purse{allowed: m.allowed, reserve: most}
	if _, _, err := x.stands(mo, m); err != nil {
		t.Fatalf("pricing a motion: %v", err)
	}
	return most - x.purse.reserve + m.allowed + lookCost(len(mo.Mutation))
}

// TestCarriedMotionsShareOnePurse draws motions that look at much, and has many of them get their approvals at
// once. No block works more for them than its policy allows a block; those that have to wait are carried by the
// next ones in the order of their approvals, though their deadlines come meanwhile; and one that no block could
// carry is void.
func TestCarriedMotionsShareOnePurse(t *testing.T) {
	testshort.Skip(t)
	waited, voided := 0, 0
	many := checkSlow(t, func(t *rapid.T) {
		w := newAssembly(t, 4, func(p *Policy) {
			p.Limits.BlockCost = leastBlockCost
			p.Approvals[0].Window = time.Minute
		})
		w.skip = rapid.IntRange(0, 3).Draw(t, "unchecked") > 0
		fill := func(name string, keys int) {
			for i := 0; i < keys; i += 100 {
				var ops []Op
				for k := i; k < min(i+100, keys); k++ {
					ops = append(ops, put(fmt.Sprintf("/k/%s/%04d", name, k), "v"))
				}
				w.run(w.reserving(0, w.ops(ops...)))
			}
		}
		fill("a", rapid.IntRange(50, 300).Draw(t, "keys"))
		n := rapid.IntRange(2, 20).Draw(t, "motions")
		ids := make([]votes.MotionID, n)
		for i := range ids {
			ops := []Op{put(fmt.Sprintf("/secrets/%d", i), "v")}
			for range rapid.SampledFrom([]int{0, 10, 30, 60, 100}).Draw(t, "looks") {
				ops = append(ops, get("/k/", "/k0"))
			}
			b := w.reserving(leastBlockCost-mutationUnit-opUnits*int64(len(ops)), w.ops(ops...))
			out := w.run(b).Outcomes[0]
			if ids[i] = out.Mutation; out.Code != Pending {
				t.Fatalf("proposing: %s %s", out.Code, out.Reason)
			}
		}
		fill("b", rapid.SampledFrom([]int{0, 300, 1000}).Draw(t, "more"))
		var approved []votes.MotionID // in the order in which they should close
		for left := ids; len(left) > 0 || w.state.Head().Docket.Open > 0; {
			var now []votes.MotionID
			if k := min(len(left), rapid.IntRange(0, MaxBallotMotions).Draw(t, "at once")); k > 0 {
				now, left = slices.Clone(left[:k]), left[k:]
			}
			slices.SortFunc(now, func(a, b votes.MotionID) int { return slices.Compare(a[:], b[:]) })
			var ballots []votes.MotionBallot
			for _, id := range now {
				ballots = append(ballots, w.approve(id, 3)...)
			}
			if len(left) == 0 && len(now) == 0 {
				ballots = append(ballots, w.late(t, approved)...)
				w.now = w.now.Add(time.Duration(rapid.IntRange(0, 1).Draw(t, "jump")) * time.Minute)
			}
			approved = append(approved, now...)
			costs := make(map[votes.MotionID]int64)
			for _, id := range approved {
				costs[id] = w.costs(t, id)
			}
			w.now = w.now.Add(time.Second)
			w.execute(w.carrying(ballots))
			sum, done := int64(0), 0
			for i, id := range approved {
				fate := w.fate(id)
				if fate == "open" {
					continue
				}
				if done++; done != i+1 {
					t.Fatalf("motion %d of those that wait is %s before the others", i, fate)
				}
				switch cost := costs[id]; {
				case cost <= leastBlockCost && fate != "carried":
					t.Fatalf("a motion of %d units is %s", cost, fate)
				case cost > leastBlockCost && fate != "void: "+reason(ErrTooMuch):
					t.Fatalf("a motion of %d units is %s", cost, fate)
				case cost > leastBlockCost:
					voided++
					sum += leastBlockCost
				default:
					sum += cost
				}
			}
			if sum > leastBlockCost {
				t.Fatalf("a block carries motions of %d units", sum)
			}
			if len(approved) > 0 && done == 0 {
				t.Fatalf("%d motions wait, and a block carries none", len(approved))
			}
			approved = approved[done:]
			for _, id := range ids {
				at, err := w.state.ApprovedAt(id)
				if waits := slices.Contains(approved, id); err != nil || waits != (at > 0) || at > w.state.Head().Height {
					t.Fatalf("motion %s waits: %t; it was approved in block %d, %v", id.Short(), waits, at, err)
				}
			}
			waited += len(approved)
			d := w.state.Head().Docket
			if int(d.Due) != len(approved) || d.Due > 0 && !w.state.DeadlinePassed(w.now) {
				t.Fatalf("%d motions wait, and the docket is %+v", len(approved), d)
			}
			if d.Due > 0 && w.skip == false {
				w.restores(t)
			}
			if len(left) == 0 && d.Open != d.Due {
				t.Fatalf("docket %+v", d)
			}
		}
	})
	if many && (waited == 0 || voided == 0) {
		t.Errorf("%d times a motion waited, and %d were void", waited, voided)
	}
}

// late is a ballot against the last motion that waits for its turn: it comes too late.
func (w *assembly) late(t *rapid.T, waiting []votes.MotionID) []votes.MotionBallot {
	if len(waiting) < 2 || !rapid.Bool().Draw(t, "late") {
		return nil
	}
	id := waiting[len(waiting)-1]
	b := w.ballot(w.keys[3], id, votes.Reject)
	if have, err := w.state.HasBallot(b.MotionVote, b.Voter); err != nil || have {
		return nil
	}
	return []votes.MotionBallot{b}
}

// restores takes a snapshot, and goes on from what it restores.
func (w *assembly) restores(t *rapid.T) {
	there, err := w.take(*w.head, 1<<20).restore()
	if err != nil {
		t.Fatalf("a snapshot: %v", err)
	}
	w.flat, w.r = there, there
	w.open()
}
