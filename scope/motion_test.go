package scope

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/lineage"
	"github.com/aweigh/aweigh/trust"
	"github.com/aweigh/aweigh/votes"
)

// assembly is a world whose policy asks for approval below /secrets/.
type assembly struct {
	*world
	keys []votes.PrivateKey // of the anchors, which weigh alike
}

func newAssembly(t fataler, anchors int, change ...func(*Policy)) *assembly {
	t.Helper()
	g, keys := testGenesis(t, anchors)
	g.Policy.Approvals = []Approval{{Matter: Changes, Prefix: []byte("/secrets/"), Num: 3, Den: 4, Anchors: 3, Window: time.Hour}}
	for _, c := range change {
		c(&g.Policy)
	}
	if err := g.Policy.Check(); err != nil {
		t.Fatalf("the policy: %v", err)
	}
	return &assembly{newWorldOf(t, g), keys}
}

// propose opens a motion.
func (w *assembly) propose(m Mutation) votes.MotionID {
	w.t.Helper()
	out := w.step(m).Outcomes[0]
	if out.Code != Pending {
		w.t.Fatalf("proposing gives %s: %s", out.Code, out.Reason)
	}
	return out.Mutation
}

func (w *assembly) ballot(key votes.PrivateKey, id votes.MotionID, c votes.Choice) votes.MotionBallot {
	w.t.Helper()
	b, err := votes.SignMotionBallot(key.Signer(), votes.MotionVote{Network: w.g.Hash(), Scope: w.g.Hash(), Motion: id, Choice: c}, "")
	if err != nil {
		w.t.Fatalf("signing: %v", err)
	}
	return b
}

// cast is a block with mutations and ballots, a second later.
func (w *assembly) cast(ballots []votes.MotionBallot, muts ...Mutation) *Result {
	w.t.Helper()
	w.now = w.now.Add(time.Second)
	doomed := w.doomed(ballots)
	res := w.execute(w.carrying(ballots, muts...))
	if len(muts) > 0 || len(doomed) != 1 {
		return res // the block itself may have changed what a motion is about
	}
	for id, why := range doomed {
		if got := w.fate(id); got == "carried" && why != "" || strings.HasPrefix(got, "void") && got != "void: "+why {
			w.t.Fatalf("it was said to be doomed by %q, and is %s", why, got)
		}
	}
	return res
}

// doomed is what would make void each of the open motions that ballots are about.
func (w *assembly) doomed(ballots []votes.MotionBallot) map[votes.MotionID]string {
	w.t.Helper()
	all := make(map[votes.MotionID]string)
	for i := range ballots {
		m, end, err := w.state.Motion(ballots[i].Motion)
		if err != nil || m == nil || end != nil {
			continue
		}
		why, err := w.state.Doomed(m)
		if err != nil {
			w.t.Fatalf("reading what dooms a motion: %v", err)
		}
		all[m.ID()] = why
	}
	return all
}

func (w *assembly) carrying(ballots []votes.MotionBallot, muts ...Mutation) *Block {
	w.t.Helper()
	b := w.block(w.sign(muts...))
	b = NewBlock(b.Header, b.Bundles, Evidence{Ballots: inOrder(ballots)})
	if err := w.state.CheckBallots(b, nobody); err != nil {
		w.t.Fatalf("the block's ballots: %v", err)
	}
	return b
}

func nobody(votes.MotionBallot) bool { return false }

// inOrder is the encodings of ballots as a block takes them.
func inOrder(ballots []votes.MotionBallot) [][]byte {
	sorted := slices.Clone(ballots)
	slices.SortFunc(sorted, func(a, b votes.MotionBallot) int {
		var s space
		return bytes.Compare(s.voted(a.Motion, a.Voter, a.Choice), s.voted(b.Motion, b.Voter, b.Choice))
	})
	var raw [][]byte
	for i := range sorted {
		raw = append(raw, sorted[i].Encode())
	}
	return raw
}

// approve is the approvals of the first n anchors.
func (w *assembly) approve(id votes.MotionID, n int) (all []votes.MotionBallot) {
	for _, k := range w.keys[:n] {
		all = append(all, w.ballot(k, id, votes.Approve))
	}
	return all
}

// fate is a motion's state: "open", or the words of its ending.
func (w *assembly) fate(id votes.MotionID) string {
	w.t.Helper()
	m, end, err := w.state.Motion(id)
	switch {
	case err != nil:
		w.t.Fatalf("reading a motion: %v", err)
	case m == nil:
		return "unknown"
	case end == nil:
		return "open"
	}
	return end.String()
}

func (w *assembly) value(key string) string {
	w.t.Helper()
	res, err := w.state.Range([]byte(key), nil, Range{})
	if err != nil {
		w.t.Fatalf("reading: %v", err)
	}
	if len(res.Kvs) == 0 {
		return ""
	}
	return string(res.Kvs[0].Value)
}

// turn ends the epoch.
func (w *assembly) turn() {
	w.t.Helper()
	for before := w.state.Head().Under; w.state.Head().Under == before; {
		w.now = w.now.Add(time.Second)
		w.execute(NewBlock(w.block(nil).Header, nil, Evidence{}))
	}
}

func TestP28ApprovalOpensAMotion(t *testing.T) {
	w := newAssembly(t, 4)
	w.one(w.put("/config/a", "1"))
	before := w.state.Head()
	id := w.propose(w.put("/secrets/a", "1"))
	if w.value("/secrets/a") != "" || w.state.Head().Revision != before.Revision {
		t.Fatal("it applied before anybody approved")
	}
	m, end, err := w.state.Motion(id)
	if err != nil || end != nil || m.ID() != id || len(m.Voters) != 4 || m.Deadline != w.now.Add(time.Hour) {
		t.Fatalf("motion %+v, %v, %v", m, end, err)
	}
	r, ok, err := w.state.Outcome(id)
	if err != nil || !ok || r.Code != Pending {
		t.Fatalf("receipt %+v, %v, %v", r, ok, err)
	}
	if out := w.step(w.put("/secrets/b", "2"), w.put("/config/a", "2")).Outcomes; out[0].Code != Pending || out[1].Code != Applied {
		t.Fatalf("outcomes %+v", out)
	}
	if d := w.state.Head().Docket; d.Open != 2 || d.Next != m.Deadline {
		t.Fatalf("docket %+v", d)
	}
}

// TestP31MotionsAreDecidedByBallots: approvals of the required share carry, and
// the change is in the lineage under its author.
func TestP31MotionsAreDecidedByBallots(t *testing.T) {
	w := newAssembly(t, 4)
	id := w.propose(w.put("/secrets/a", "1"))
	w.cast(w.approve(id, 2))
	if got := w.fate(id); got != "open" {
		t.Fatalf("half of the weight makes it %s", got)
	}
	w.cast(w.approve(id, 3)[2:])
	if got := w.fate(id); got != "carried" || w.value("/secrets/a") != "1" {
		t.Fatalf("three quarters make it %s, the value is %q", got, w.value("/secrets/a"))
	}
	_, end, _ := w.state.Motion(id)
	if end.Revision != w.state.Head().Revision || !end.Succeeded {
		t.Fatalf("ending %+v at revision %d", end, w.state.Head().Revision)
	}
	var classes []string
	log := w.state.Lineage()
	for i := range log.Size() {
		e, _, err := log.Entry(i)
		if err != nil || e.Mutation != id {
			t.Fatalf("entry %d: %+v, %v", i, e, err)
		}
		if e.Class != lineage.Voted && e.Author != w.author.Public().ID() {
			t.Errorf("%s by %s", e.Class, e.Author.Short())
		}
		classes = append(classes, e.Class.String())
	}
	if got := strings.Join(classes, " "); got != "opened voted voted voted insert closed" {
		t.Errorf("entries: %s", got)
	}
	other := w.propose(w.put("/secrets/b", "1"))
	w.cast([]votes.MotionBallot{w.ballot(w.keys[0], other, votes.Reject), w.ballot(w.keys[1], other, votes.Reject)})
	if got := w.fate(other); got != "rejected" {
		t.Fatalf("without half of the weight it is %s", got)
	}
	third := w.propose(w.put("/secrets/c", "1"))
	w.now = w.now.Add(time.Hour)
	if !w.state.DeadlinePassed(w.now) {
		t.Error("nobody would wake for the deadline")
	}
	w.cast(w.approve(third, 4))
	if got := w.fate(third); got != "expired" || w.value("/secrets/c") != "" {
		t.Fatalf("after its deadline it is %s", got)
	}
	if d := w.state.Head().Docket; d.Open != 0 || d.Closed != 3 || d.Next != 0 {
		t.Errorf("docket %+v", d)
	}
}

// TestP29BallotsMayComeFirst: a motion that opens in the block of its ballots is
// carried by that block (P35).
func TestP29BallotsMayComeFirst(t *testing.T) {
	w := newAssembly(t, 4)
	m := w.put("/secrets/a", "1")
	m.Author = w.author.Public().ID()
	id := ID(m.Encode())
	res := w.cast(w.approve(id, 4), m)
	if res.Outcomes[0].Code != Pending || w.fate(id) != "carried" || w.value("/secrets/a") != "1" {
		t.Fatalf("%+v, %s", res.Outcomes, w.fate(id))
	}
}

// TestP32ConflictsApplyOnce: of motions about one key, at most one applies, in
// whatever way they are about it.
func TestP32ConflictsApplyOnce(t *testing.T) {
	for name, pair := range map[string][2]func(*assembly) Mutation{
		"two puts":             {func(w *assembly) Mutation { return w.put("/secrets/a", "1") }, func(w *assembly) Mutation { return w.put("/secrets/a", "2") }},
		"a put and a deletion": {func(w *assembly) Mutation { return w.put("/secrets/a", "1") }, func(w *assembly) Mutation { return w.ops(del("/secrets/a", "")) }},
		"a put and a range":    {func(w *assembly) Mutation { return w.put("/secrets/a", "1") }, func(w *assembly) Mutation { return w.ops(del("/secrets/a", "/secrets/b")) }},
	} {
		t.Run(name, func(t *testing.T) {
			w := newAssembly(t, 4)
			first := w.propose(w.put("/secrets/a", "0"))
			w.cast(w.approve(first, 4))
			x, y := w.propose(pair[0](w)), w.propose(pair[1](w))
			w.cast(append(w.approve(x, 4), w.approve(y, 4)...))
			fates := []string{w.fate(x), w.fate(y)}
			slices.Sort(fates)
			if fates[0] != "carried" || !strings.HasPrefix(fates[1], "void: ") || !strings.Contains(fates[1], "was changed after it opened") {
				t.Fatalf("%q", fates)
			}
			x, y = w.propose(pair[0](w)), w.propose(pair[1](w))
			w.cast(w.approve(x, 4))
			if why := w.doomed(w.approve(y, 1))[y]; !strings.Contains(why, "was changed after it opened") {
				t.Errorf("the second is doomed by %q", why)
			}
			w.cast(w.approve(y, 4))
		})
	}
}

// TestVoidIsWhatIsNotAsItWas: the compares of a transaction are looked at again.
func TestVoidIsWhatIsNotAsItWas(t *testing.T) {
	w := newAssembly(t, 4)
	txn := Txn{
		Compare: []Compare{{Target: OnVersion, Relation: Equal, Key: []byte("/lock"), Number: 0}},
		Success: []Op{put("/secrets/a", "1")}, Failure: []Op{get("/lock", "")},
	}
	id := w.propose(w.txn(txn))
	w.one(w.put("/lock", "x"))
	if out := w.one(w.txn(txn)); out.Succeeded {
		t.Fatal("a branch that needs no approval is not taken")
	}
	before := w.state.Head().Digest
	if why := w.doomed(w.approve(id, 1))[id]; !strings.HasPrefix(why, "the conditions") || w.state.Head().Digest != before {
		t.Errorf("it is doomed by %q", why)
	}
	w.cast(w.approve(id, 4))
	if got := w.fate(id); !strings.HasPrefix(got, "void: the conditions") || w.value("/secrets/a") != "" {
		t.Fatalf("%s", got)
	}
}

// TestP33EquivocatorsLeaveTheTally: a voter with both votes counts on neither side,
// and an anchor loses its trust, in time or late.
func TestP33EquivocatorsLeaveTheTally(t *testing.T) {
	w := newAssembly(t, 5)
	id := w.propose(w.put("/secrets/a", "1"))
	w.cast(append(w.approve(id, 3), w.ballot(w.keys[2], id, votes.Reject)))
	if got := w.fate(id); got != "open" {
		t.Fatalf("%s", got)
	}
	tally, err := w.state.Tally(id)
	if err != nil || tally.Anchors != 2 || len(tally.Equivocations) != 1 {
		t.Fatalf("%v, %v", tally, err)
	}
	barred := func(i int) bool {
		l, err := w.state.Ledger()
		if err != nil {
			t.Fatal(err)
		}
		s, _ := l.Standing(w.keys[i].Public().ID())
		return s.Barred
	}
	if !barred(2) || barred(1) {
		t.Fatal("the liar keeps its trust, or another lost it")
	}
	if due, _ := w.state.Due(w.now); !due {
		t.Error("the liar keeps its seat")
	}
}

func TestP34LateBallotsAreRecorded(t *testing.T) {
	w := newAssembly(t, 4)
	id := w.propose(w.put("/secrets/a", "1"))
	w.cast(w.approve(id, 3))
	head := w.state.Head()
	res := w.cast([]votes.MotionBallot{w.ballot(w.keys[3], id, votes.Reject), w.ballot(w.keys[0], id, votes.Reject)})
	if got := w.fate(id); got != "carried" || w.state.Head().Revision != head.Revision {
		t.Fatalf("%s", got)
	}
	all, err := w.state.Ballots(id)
	if err != nil || len(all) != 5 {
		t.Fatalf("%d ballots, %v", len(all), err)
	}
	late := 0
	for _, b := range all {
		if b.Late {
			late++
		}
	}
	if late != 2 || len(res.Trust) == 0 || res.Trust[0].Evidence.Kind != trust.Equivocated {
		t.Errorf("%d late, trust %+v", late, res.Trust)
	}
}

// TestOutcomesDoNotDependOnTheWay: for honest voters, every order, repetition and
// split of the ballots into blocks gives the same fate.
func TestOutcomesDoNotDependOnTheWay(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range testshort.Cases(8, 30, 60) {
		n := 3 + r.IntN(5)
		choices := make([]votes.Choice, n)
		for i := range choices {
			choices[i] = votes.Choice(1 + r.IntN(2))
		}
		var want string
		for way := range 6 {
			w := newAssembly(t, n)
			w.skip = true
			id := w.propose(w.put("/secrets/a", "1"))
			order := r.Perm(n)
			for len(order) > 0 {
				some := 1 + r.IntN(len(order))
				var b []votes.MotionBallot
				for _, i := range order[:some] {
					b = append(b, w.ballot(w.keys[i], id, choices[i]))
				}
				order = order[some:]
				w.cast(b)
			}
			if got := w.fate(id); way == 0 {
				want = got
			} else if got != want {
				t.Fatalf("%v: %s, and another way %s", choices, want, got)
			}
		}
	}
}

func TestApproversVoteBesideAnchors(t *testing.T) {
	alice, bob := testKey(t, 70), testKey(t, 71)
	w := newAssembly(t, 4, func(p *Policy) {
		p.Approvals[0].Approvers = []Approver{
			{Name: "alice", Key: alice.Public(), Required: true},
			{Name: "bob", Key: bob.Public(), Share: 1_000_000},
		}
	})
	id := w.propose(w.put("/secrets/a", "1"))
	w.cast(w.approve(id, 4))
	if got := w.fate(id); got != "open" {
		t.Fatalf("%s", got)
	}
	w.cast([]votes.MotionBallot{w.ballot(bob, id, votes.Approve)})
	if got := w.fate(id); got != "open" {
		t.Fatalf("without alice it is %s", got)
	}
	w.cast([]votes.MotionBallot{w.ballot(alice, id, votes.Approve)})
	if got := w.fate(id); got != "carried" {
		t.Fatalf("with alice it is %s", got)
	}
	other := w.propose(w.put("/secrets/b", "1"))
	w.cast([]votes.MotionBallot{w.ballot(alice, other, votes.Reject)})
	if got := w.fate(other); got != "rejected" {
		t.Fatalf("against alice it is %s", got)
	}
}

// TestAuthorsWithdraw: only the author of a motion can withdraw it.
func TestAuthorsWithdraw(t *testing.T) {
	w := newAssembly(t, 4)
	id := w.propose(w.put("/secrets/a", "1"))
	author := w.author
	w.author = testKey(t, 98)
	if out := w.step(w.mutation(Withdraw, Withdrawal{Motion: id})).Outcomes[0]; out.Code != Failed || w.fate(id) != "open" {
		t.Fatalf("%s: %s", out.Code, out.Reason)
	}
	w.author = author
	w.one(w.mutation(Withdraw, Withdrawal{Motion: id}))
	if got := w.fate(id); got != "withdrawn" {
		t.Fatalf("%s", got)
	}
	if out := w.step(w.mutation(Withdraw, Withdrawal{Motion: id})).Outcomes[0]; out.Code != Failed || !strings.Contains(out.Reason, "closed already: withdrawn") {
		t.Fatalf("%s: %s", out.Code, out.Reason)
	}
}

// TestElectoratesStay: roster and policy of the opening epoch decide.
func TestElectoratesStay(t *testing.T) {
	w := newAssembly(t, 4, func(p *Policy) { p.EpochBlocks = 3 })
	id := w.propose(w.put("/secrets/a", "1"))
	w.turn()
	e, err := w.state.Epoch()
	if err != nil || e.Number != 1 {
		t.Fatalf("%+v, %v", e, err)
	}
	m, _, _ := w.state.Motion(id)
	if m.Epoch != 0 {
		t.Fatalf("it opened in epoch %d", m.Epoch)
	}
	w.now = w.now.Add(time.Second)
	w.execute(NewBlock(w.block(nil).Header, nil, Evidence{Ballots: inOrder(w.approve(id, 3))}))
	if got := w.fate(id); got != "carried" {
		t.Fatalf("%s", got)
	}
}

// TestBadBallotsSpoilABlock names what a block must not carry.
func TestBadBallotsSpoilABlock(t *testing.T) {
	w := newAssembly(t, 4)
	id := w.propose(w.put("/secrets/a", "1"))
	w.cast(w.approve(id, 1))
	good := w.approve(id, 3)[1:]
	w.now = w.now.Add(time.Second)
	forged := good[0]
	forged.Signature = bytes.Clone(forged.Signature)
	forged.Signature[3] ^= 1
	foreign := w.ballot(w.keys[1], id, votes.Approve)
	foreign.Network[0] ^= 1
	sorted := inOrder(good)
	var crowd []votes.MotionBallot
	for i := range MaxBallotMotions + 1 {
		crowd = append(crowd, w.ballot(w.keys[0], aweigh.Sum([]byte{byte(i)}), votes.Approve))
	}
	for name, c := range map[string]struct {
		ballots [][]byte
		want    error
	}{
		"recorded already":        {inOrder(w.approve(id, 1)), nil},
		"twice":                   {[][]byte{sorted[0], sorted[0]}, nil},
		"out of order":            {[][]byte{sorted[1], sorted[0]}, nil},
		"forged":                  {inOrder([]votes.MotionBallot{forged}), votes.ErrForged},
		"foreign":                 {inOrder([]votes.MotionBallot{foreign}), votes.ErrForeign},
		"of a key without a vote": {inOrder([]votes.MotionBallot{w.ballot(testKey(t, 77), id, votes.Approve)}), votes.ErrNotInRoster},
		"malformed":               {[][]byte{{1, 2, 3}}, votes.ErrMalformed},
		"too many motions":        {inOrder(crowd), nil},
	} {
		b := NewBlock(w.block(nil).Header, nil, Evidence{Ballots: c.ballots})
		if err := w.state.CheckBallots(b, nobody); !errors.Is(err, ErrInvalid) || c.want != nil && !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestMotionsAreBounded: no author fills more than its share, closed motions give
// way, and a forgotten motion leaves no records.
func TestMotionsAreBounded(t *testing.T) {
	w := newAssembly(t, 4)
	w.skip = true
	var muts []Mutation
	for i := range motionsOfOne + 1 {
		muts = append(muts, w.put(fmt.Sprintf("/secrets/%d", i), "1"))
	}
	out := w.step(muts...).Outcomes
	if last := out[len(out)-1]; last.Code != Failed || !strings.Contains(last.Reason, "does not know") || out[len(out)-2].Code != Pending {
		t.Fatalf("%+v", last)
	}
	w.cast(w.approve(out[0].Mutation, 4))
	w.now = w.now.Add(time.Hour)
	for w.state.DeadlinePassed(w.now) {
		w.step()
	}
	if d := w.state.Head().Docket; d.Open != 0 || d.Closed != motionsOfOne {
		t.Fatalf("docket %+v", d)
	}
	w.now = w.now.Add(keptFor + time.Hour)
	w.skip = false
	for range motionsOfOne/forgottenAtOnce + 1 {
		w.step()
	}
	if d := w.state.Head().Docket; d != (MotionIndex{}) {
		t.Fatalf("docket %+v", d)
	}
	for _, kind := range []byte{atMotion, atVoted, atOpen, atDue, atClosed} {
		prefix := w.state.space.at(kind)
		_ = w.r.Scan(prefix, kv.PrefixEnd(prefix), false, func(k, _ []byte) bool {
			t.Errorf("%q is left", k)
			return true
		})
	}
}

// TestForgottenMotionsAreWhole: the ballots of one block carry two motions, of which the state keeps one. What it
// forgets has the ballots and the end that the block gave it, or nothing could prove what it changed.
func TestForgottenMotionsAreWhole(t *testing.T) {
	w := newAssembly(t, 4)
	first := w.propose(w.put("/secrets/a", "1"))
	second := w.propose(w.put("/secrets/b", "1"))
	w.cast([]votes.MotionBallot{w.ballot(w.keys[3], first, votes.Reject), w.ballot(w.keys[3], second, votes.Reject)})
	bounds := DefaultBounds()
	bounds.MotionsKept = 1
	w.state = w.state.Within(&bounds)
	res := w.cast(append(w.approve(first, 3), w.approve(second, 3)...))
	if len(res.Forgotten) != 1 || w.value("/secrets/a") != "1" || w.value("/secrets/b") != "1" {
		t.Fatalf("%d motions are forgotten", len(res.Forgotten))
	}
	m := res.Forgotten[0]
	if id := m.Motion.ID(); id != first && id != second || w.fate(id) != "unknown" {
		t.Fatalf("motion %s is forgotten, and is %s", id.Short(), w.fate(id))
	}
	if m.Ending == nil || m.Ending.Fate != Carried || len(m.Ballots) != 4 {
		t.Errorf("%d ballots, and the end is %v", len(m.Ballots), m.Ending)
	}
}

// TestApprovalIsThatOfTheLongestPrefix holds the choice against the plain words:
// for each key that exists in a small world, the longest prefix decides.
func TestApprovalIsThatOfTheLongestPrefix(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	letters := "ab"
	word := func(most int) string {
		var b strings.Builder
		for range r.IntN(most + 1) {
			b.WriteByte(letters[r.IntN(2)])
		}
		return b.String()
	}
	var keys []string
	for n := 1; n <= 5; n++ {
		for bits := range 1 << n {
			var b strings.Builder
			for i := range n {
				b.WriteByte(letters[bits>>i&1])
			}
			keys = append(keys, b.String())
		}
	}
	single, many, refused := 0, 0, 0
	for range 20_000 {
		p := OpenPolicy(1)
		seen := map[string]bool{}
		for range 1 + r.IntN(4) {
			a := Approval{Matter: Matter(1 + r.IntN(2)), Prefix: []byte(word(3))}
			if id := fmt.Sprint(a.Matter, string(a.Prefix)); !seen[id] {
				seen[id] = true
				p.Approvals = append(p.Approvals, a)
			}
		}
		op := Op{Kind: OpPut, Key: []byte(word(3) + "a"), Lease: r.Int64N(2)}
		if r.IntN(2) == 0 {
			op.Kind, op.Lease = OpDelete, 0
			if r.IntN(2) == 0 {
				op.End = []byte(word(4))
				if r.IntN(5) == 0 {
					op.End = []byte{0}
				}
			}
		}
		needs := map[*Approval]bool{}
		free, guarded := false, false
		for _, k := range keys {
			if !Within([]byte(k), op.Key, op.End) {
				continue
			}
			var best *Approval
			for i := range p.Approvals {
				a := &p.Approvals[i]
				if !strings.HasPrefix(k, string(a.Prefix)) || a.Matter == Deletions && op.Kind == OpPut {
					guarded = guarded || strings.HasPrefix(k, string(a.Prefix))
					continue
				}
				guarded = true
				if best == nil || len(a.Prefix) > len(best.Prefix) || len(a.Prefix) == len(best.Prefix) && a.Matter == Deletions {
					best = a
				}
			}
			if best == nil {
				free = true
			} else {
				needs[best] = true
			}
		}
		got, failure := p.approval(&plan{ops: []Op{op}}, "")
		switch {
		case op.Lease != 0 && guarded: // the end of a lease has no approval
			if failure != ErrLeased {
				t.Fatalf("a lease for %q under %v: %v", op.Key, p.Approvals, failure)
			}
		case len(needs) == 0:
			// No existing key is touched: an approval is harmless then.
		case failure != nil:
			refused++
			if len(op.End) == 0 && len(needs) == 1 {
				t.Fatalf("one key, and it is refused: %v of %q", failure, op.Key)
			}
		case len(needs) > 1 || !needs[got]:
			t.Fatalf("%v %q %q under %v: got %v, %d are needed (free: %v)", op.Kind, op.Key, op.End, p.Approvals, got, len(needs), free)
		case len(op.End) == 0:
			single++
		default:
			many++
		}
	}
	if single < 1000 || many < 1000 || refused == 0 {
		t.Errorf("%d single keys, %d ranges, %d refused: too few to prove anything", single, many, refused)
	}
}

func TestPoliciesOfApprovalAreChecked(t *testing.T) {
	good := func() Policy {
		p := OpenPolicy(1)
		p.Approvals = []Approval{{Matter: Changes, Prefix: []byte("/a/"), Num: 1, Den: 2, Window: time.Hour,
			Approvers: []Approver{{Name: "alice", Key: testKey(t, 1).Public(), Required: true}}}}
		return p
	}
	if p := good(); p.Check() != nil {
		t.Fatal(p.Check())
	}
	for name, bend := range map[string]func(*Policy){
		"no matter":        func(p *Policy) { p.Approvals[0].Matter = 9 },
		"more than all":    func(p *Policy) { p.Approvals[0].Num = 3 },
		"no share":         func(p *Policy) { p.Approvals[0].Den = 0 },
		"no window":        func(p *Policy) { p.Approvals[0].Window = 0 },
		"an endless one":   func(p *Policy) { p.Approvals[0].Window = 1 << 62 },
		"a long prefix":    func(p *Policy) { p.Approvals[0].Prefix = make([]byte, 2000) },
		"twice":            func(p *Policy) { p.Approvals = append(p.Approvals, p.Approvals[0]) },
		"nobody's key":     func(p *Policy) { p.Approvals[0].Approvers[0].Key = votes.PublicKey{} },
		"no name":          func(p *Policy) { p.Approvals[0].Approvers[0].Name = "" },
		"no say":           func(p *Policy) { p.Approvals[0].Approvers[0].Required = false },
		"one key, two men": func(p *Policy) { a := &p.Approvals[0]; a.Approvers = append(a.Approvers, a.Approvers[0]) },
	} {
		p := good()
		if bend(&p); !errors.Is(p.Check(), ErrInvalid) {
			t.Errorf("%s: %v", name, p.Check())
		}
	}
}

// TestSnapshotsCarryMotions: open, closed and voted ones, and no byte of them may
// differ.
func TestSnapshotsCarryMotions(t *testing.T) {
	w := newAssembly(t, 4)
	closed, open := w.propose(w.put("/secrets/a", "1")), w.propose(w.put("/secrets/b", "1"))
	w.cast(append(w.approve(closed, 3), w.approve(open, 1)...))
	w.now = w.now.Add(time.Second)
	b := w.block(nil)
	w.execute(b)
	w.now = w.now.Add(time.Second)
	good := w.take(b.Header, 1<<20)
	into, err := good.restore()
	if err != nil {
		t.Fatal(err)
	}
	o := *w.world
	o.r, o.flat = into, into
	o.open()
	n := 0
	for _, kind := range []byte{atMotion, atVoted, atOpen, atClosed} {
		prefix := w.state.space.at(kind)
		a, b := kept(w.r, prefix), kept(o.r, prefix)
		if !slices.Equal(a, b) || len(a) == 0 {
			t.Fatalf("%q:\n%q\n%q", kind, a, b)
		}
		for i, r := range good.records {
			if r.Key[0] != kind {
				continue
			}
			bad := slices.Clone(good.records)
			bad[i].Value = bytes.Clone(r.Value)
			bad[i].Value[n%len(r.Value)] ^= 1
			if _, err := (taken{h: good.h, child: good.child, records: bad}).restore(); !errors.Is(err, ErrInvalid) {
				t.Errorf("a bent record %q: %v", r.Key, err)
			}
			n++
		}
	}
	if got := (&assembly{&o, w.keys}).fate(open); got != "open" || n < 8 {
		t.Errorf("%s, %d records", got, n)
	}
}

// TestDecisionsAreMotions: ballots and mutations of anchors count side by side, a
// policy may require more than finalizes, and never less.
func TestDecisionsAreMotions(t *testing.T) {
	alice := testKey(t, 70)
	w := newAssembly(t, 4, func(p *Policy) {
		p.Approvals = append(p.Approvals,
			Approval{Matter: Policies, Num: 1, Den: 100, Window: time.Hour},
			Approval{Matter: Membership, Window: time.Hour, Num: 1, Den: 2, Approvers: []Approver{{Name: "alice", Key: alice.Public(), Required: true}}})
	})
	by := func(key votes.PrivateKey, d Decision) Outcome {
		t.Helper()
		w.author = key
		return w.step(w.mutation(Govern, d)).Outcomes[0]
	}
	p := w.g.Policy
	p.EpochBlocks = 77
	set := Decision{Kind: SetPolicy, Policy: &p}
	opened := by(w.keys[0], set)
	if opened.Code != Applied {
		t.Fatalf("%s: %s", opened.Code, opened.Reason)
	}
	if again := by(w.keys[0], set); again.Code != Failed || !strings.Contains(again.Reason, "approved it already") {
		t.Errorf("%s: %s", again.Code, again.Reason)
	}
	open, err := w.state.Agenda()
	if err != nil || len(open) != 1 || open[0].Motion != opened.Mutation || open[0].Tally.Anchors != 1 || open[0].Deadline != open[0].Opened.Add(time.Hour) {
		t.Fatalf("%+v, %v", open, err)
	}
	w.cast([]votes.MotionBallot{w.ballot(w.keys[1], opened.Mutation, votes.Approve)})
	if got := w.fate(opened.Mutation); got != "open" {
		t.Fatalf("with less than what finalizes it is %s", got)
	}
	w.cast([]votes.MotionBallot{w.ballot(w.keys[2], opened.Mutation, votes.Approve)})
	if open, _ = w.state.Agenda(); w.fate(opened.Mutation) != "carried" || len(open) != 1 || open[0].Carried == 0 {
		t.Fatalf("%s, %+v", w.fate(opened.Mutation), open)
	}
	w.turn()
	evict := by(w.keys[0], Decision{Kind: Evict, Subject: w.keys[3].Public().ID()})
	for _, k := range w.keys[1:3] {
		by(k, Decision{Kind: Evict, Subject: w.keys[3].Public().ID()})
	}
	if got := w.fate(evict.Mutation); got != "open" {
		t.Fatalf("without alice it is %s", got)
	}
	// A voter that approves by a mutation and rejects by a ballot counts on neither
	// side, and no proof is made of it.
	res := w.cast([]votes.MotionBallot{w.ballot(w.keys[0], evict.Mutation, votes.Reject)})
	tally, err := w.state.Tally(evict.Mutation)
	if err != nil || tally.Void == 0 || tally.Anchors != 2 || len(res.Trust) != 0 {
		t.Fatalf("%v, %v, %+v", tally, err, res.Trust)
	}
	w.cast([]votes.MotionBallot{w.ballot(alice, evict.Mutation, votes.Reject)})
	if got := w.fate(evict.Mutation); got != "rejected" {
		t.Fatalf("against alice it is %s", got)
	}
}

// TestPutAndDeletedIsChanged: a key that was absent when a motion opened, and is
// absent again, had content in between that voters did not see.
func TestPutAndDeletedIsChanged(t *testing.T) {
	for name, end := range map[string]string{"one key": "", "a range": "/secrets/b"} {
		t.Run(name, func(t *testing.T) {
			w := newAssembly(t, 4, func(p *Policy) { p.Approvals[0].Matter = Deletions })
			w.one(w.put("/secrets/a", "0"))
			del := func() Mutation { return w.ops(del("/secrets/a", end)) }
			first := w.propose(del())
			w.cast(w.approve(first, 4))
			waits := w.propose(del())
			w.one(w.put("/secrets/a", "1"))
			between := w.propose(del())
			w.cast(w.approve(between, 4))
			w.cast(w.approve(waits, 4))
			if got := w.fate(waits); !strings.HasPrefix(got, "void") {
				t.Errorf("it is %s", got)
			}
		})
	}
}

// TestTransactionsWithinTakeNoApproval: no voter could know when a motion opens which
// branches would be taken when it is carried.
func TestTransactionsWithinTakeNoApproval(t *testing.T) {
	w := newAssembly(t, 4)
	flag := Compare{Target: OnVersion, Relation: Equal, Key: []byte("/flag")}
	out := w.step(w.ops(Op{Kind: OpTxn, Txn: &Txn{Compare: []Compare{flag}, Success: []Op{put("/secrets/a", "1")}, Failure: []Op{put("/secrets/b", "1")}}})).Outcomes[0]
	if out.Code != Failed || !strings.Contains(out.Reason, "transactions within") {
		t.Fatalf("%s: %s", out.Code, out.Reason)
	}
	w.one(w.ops(Op{Kind: OpTxn, Txn: &Txn{Success: []Op{put("/free", "1")}}}))
}

// TestMotionsAreOfTheirPolicy: what opened under an approval that is asked for no
// more is void, and so is another policy that would undo what came between.
func TestMotionsAreOfTheirPolicy(t *testing.T) {
	w := newAssembly(t, 4)
	old := w.propose(w.put("/secrets/a", "1"))
	decide := func(blocks uint64, change func(*Policy), all bool) votes.MotionID {
		t.Helper()
		p := w.g.Policy
		p.Approvals = slices.Clone(p.Approvals)
		p.EpochBlocks = blocks
		change(&p)
		w.author = w.keys[0]
		out := w.step(w.mutation(Govern, Decision{Kind: SetPolicy, Policy: &p})).Outcomes[0]
		if out.Code != Applied {
			t.Fatalf("%s: %s", out.Code, out.Reason)
		}
		if all {
			w.cast(w.approve(out.Mutation, 4)[1:])
		}
		return out.Mutation
	}
	stale := decide(70, func(*Policy) {}, false)
	decide(71, func(p *Policy) { p.Approvals[0].Num = 4 }, true)
	w.turn()
	w.cast(w.approve(old, 4))
	w.cast(w.approve(stale, 4)[1:])
	if got := w.fate(old); !strings.HasPrefix(got, "void: the policy asks for another approval") || w.value("/secrets/a") != "" {
		t.Errorf("the write is %s", got)
	}
	if got := w.fate(stale); !strings.HasPrefix(got, "superseded: another policy") {
		t.Errorf("the policy is %s", got)
	}
}

// TestDecisionsNeedWhatFinalizes: of the anchors, however approvers vote; and no
// anchor withdraws the decision about itself.
func TestDecisionsNeedWhatFinalizes(t *testing.T) {
	bad := OpenPolicy(1)
	bad.Approvals = []Approval{{Matter: Policies, Num: 1, Den: 2, Window: time.Hour, Approvers: []Approver{{Name: "alice", Key: testKey(t, 70).Public(), Share: 9_000_000}}}}
	if err := bad.Check(); !errors.Is(err, ErrInvalid) {
		t.Errorf("approvers with a weight in decisions: %v", err)
	}
	w := newAssembly(t, 4, func(p *Policy) {
		p.Approvals = append(p.Approvals, Approval{Matter: Membership, Num: 1, Den: 2, Window: time.Hour, Approvers: []Approver{{Name: "a too", Key: testKey(t, 1).Public(), Required: true}}})
	})
	w.author = w.keys[0]
	evict := w.step(w.mutation(Govern, Decision{Kind: Evict, Subject: w.keys[1].Public().ID()})).Outcomes[0]
	if out := w.step(w.mutation(Withdraw, Withdrawal{Motion: evict.Mutation})).Outcomes[0]; out.Code != Failed || !strings.Contains(out.Reason, "reject it") {
		t.Errorf("withdrawing: %s %s", out.Code, out.Reason)
	}
	fifth := testKey(t, 77)
	w.author = fifth
	if out := w.step(w.mutation(Govern, Admission(w.g.Hash(), fifth, "e", "peer-e", testKey(t, 1).Public().ID()))).Outcomes[0]; out.Code != Applied {
		t.Errorf("a sponsor that is an approver: %s", out.Reason)
	}
}

// TestLateIsLateHoweverMuchExpires: more motions end at one time than a block closes;
// ballots that come then carry none of them.
func TestLateIsLateHoweverMuchExpires(t *testing.T) {
	w := newAssembly(t, 4)
	w.skip = true
	var muts []Mutation
	for i := range expiredAtOnce + 36 {
		muts = append(muts, w.put(fmt.Sprintf("/secrets/%d", i), "1"))
	}
	out := w.step(muts...).Outcomes
	w.now = w.now.Add(2 * time.Hour)
	slices.SortFunc(out, func(a, b Outcome) int { return bytes.Compare(a.Mutation[:], b.Mutation[:]) })
	var ballots []votes.MotionBallot
	last := out[len(out)-10:] // they expire in this order
	for i := range last {
		ballots = append(ballots, w.approve(last[i].Mutation, 3)...)
	}
	w.cast(ballots)
	for i := range last {
		if got := w.fate(last[i].Mutation); got != "expired" {
			t.Fatalf("motion %d of the last is %s", i, got)
		}
	}
	w.step()
	if d := w.state.Head().Docket; d.Open != 0 {
		t.Errorf("docket %+v", d)
	}
}

// TestDecisionsNeedNoRoom: motions on keys never keep decisions out, nor
// decisions motions.
func TestDecisionsNeedNoRoom(t *testing.T) {
	w := newAssembly(t, 4)
	w.skip = true
	before := w.state.Head().Docket
	p := w.g.Policy
	p.EpochBlocks = 77
	w.author = w.keys[0]
	if out := w.step(w.mutation(Govern, Decision{Kind: SetPolicy, Policy: &p})).Outcomes[0]; out.Code != Applied {
		t.Fatalf("%s: %s", out.Code, out.Reason)
	}
	if d := w.state.Head().Docket; d.Bytes != before.Bytes || d.Open != 1 {
		t.Errorf("docket %+v", d)
	}
	var muts []Mutation
	for i := range motionsOfOne + 1 {
		muts = append(muts, w.put(fmt.Sprintf("/secrets/%d", i), "1"))
	}
	out := w.step(muts...).Outcomes
	if out[motionsOfOne-1].Code != Pending || out[motionsOfOne].Code != Failed {
		t.Errorf("%s, %s", out[motionsOfOne-1].Reason, out[motionsOfOne].Code)
	}
	p.EpochBlocks = 78
	if out := w.step(w.mutation(Govern, Decision{Kind: SetPolicy, Policy: &p})).Outcomes[0]; out.Code != Applied {
		t.Errorf("beside all that are open: %s", out.Reason)
	}
}

// TestForecastsRefuseWhatDecisionsDo: a policy that no decision could set is refused
// when it is asked about, with the reason that the decision would have.
func TestForecastsRefuseWhatDecisionsDo(t *testing.T) {
	w := newAssembly(t, 4)
	w.author = w.keys[0]
	for name, change := range map[string]func(*Policy){
		"too many anchors":     func(p *Policy) { p.Approvals[0].Anchors = 5 },
		"another mode":         func(p *Policy) { p.Rules.Mode++ },
		"too short":            func(p *Policy) { p.Limits.ValidFor, p.Limits.Drift = time.Millisecond, time.Microsecond },
		"fewer than there are": func(p *Policy) { p.Limits.Anchors = 3 },
	} {
		p := w.g.Policy
		p.Approvals = slices.Clone(p.Approvals)
		change(&p)
		if p.Check() != nil {
			t.Errorf("%s: the policy is none in any scope", name)
			continue
		}
		out := w.step(w.mutation(Govern, Decision{Kind: SetPolicy, Policy: &p})).Outcomes[0]
		_, _, err := w.state.ForecastUnder(p)
		if out.Code != Failed || !errors.Is(err, ErrInvalid) || !strings.HasSuffix(err.Error(), out.Reason) {
			t.Errorf("%s: %v, and the decision: %s: %s", name, err, out.Code, out.Reason)
		}
	}
}
