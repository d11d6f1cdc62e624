package scope

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/trust"
	"github.com/aweigh/aweigh/votes"
)

// council is ten anchors that weigh alike: seven carry a motion, four reject it.
func newCouncil(t fataler, change ...func(*Policy)) *assembly {
	t.Helper()
	first := func(p *Policy) {
		p.EpochBlocks = 40
		p.Approvals[0].Num, p.Approvals[0].Den, p.Approvals[0].Anchors = 2, 3, 0
	}
	return newAssembly(t, 10, append([]func(*Policy){first}, change...)...)
}

// say is a block of ballots: an upper case letter is an anchor that approves, a lower case
// one rejects.
func (w *assembly) say(id votes.MotionID, who string) {
	w.t.Helper()
	var all []votes.MotionBallot
	for _, c := range who {
		choice := votes.Approve
		if c >= 'a' {
			choice = votes.Reject
		}
		all = append(all, w.ballot(w.keys[strings.ToLower(string(c))[0]-'a'], id, choice))
	}
	w.cast(all)
}

// opinions are the counts of the epoch so far, by anchor: with, against, silent.
func (w *assembly) opinions() string {
	w.t.Helper()
	w.open()
	tally, err := w.state.count()
	if err != nil {
		w.t.Fatalf("reading the tally: %v", err)
	}
	var all []string
	for seat, j := range tally.judged {
		if j != (judged{}) {
			all = append(all, fmt.Sprintf("%c%d%d%d", 'a'+seat, j[with], j[against], j[silent]))
		}
	}
	return strings.Join(all, " ")
}

func TestP50MotionsJudgeTheirVoters(t *testing.T) {
	const later = 8 * time.Minute // the policy's time for an answer is an eighth of an hour
	for _, c := range []struct {
		name  string
		acts  []any // ballots of a block, a time that passes, a change of the key, or a withdrawal
		fate  string
		found string
	}{
		{"carried", []any{"abCD", "EF", "GHI"}, "carried", "a010 b010 c100 d100 e100 f100"},
		{"carried after long", []any{"abCD", "EF", later, "GHI"}, "carried", "a010 b010 c100 d100 e100 f100 g001 h001 i001 j001"},
		{"in time after the outcome was clear", []any{"abCDEF", "G", later, "HI"}, "carried", "a010 b010 c100 d100 e100 f100 h001 i001 j001"},
		{"carried at once", []any{"aCDEFGHI"}, "carried", "a010 c100 d100 e100 f100 g100 h100 i100"},
		{"a tenth is against, late", []any{"CDEFGH", "aI"}, "carried", "c100 d100 e100 f100 g100 h100"},
		{"all agree", []any{"ABCDEFG"}, "carried", ""},
		{"all agree after long", []any{"ABC", later, "DEFG"}, "carried", ""},
		{"rejected", []any{"abcdEFG"}, "rejected", "a100 b100 c100 d100 e010 f010 g010"},
		{"rejected by the lighter side", []any{"EFGHI", "abcd"}, "rejected", ""},
		{"rejected by as much", []any{"EFGH", "abcd"}, "rejected", ""},
		{"both ways", []any{"abCDE", later, "AFGHI"}, "carried", "b010 c100 d100 e100 f100 g100 h100 i100 j001"},
		{"expired", []any{"abCDE", 2 * time.Hour, "FGH"}, "expired", ""},
		{"void", []any{"abCDE", false, "FGHI"}, "void: \"/secrets/a\" was changed after it opened; propose it again", ""},
		{"withdrawn", []any{"abCDE", true}, "withdrawn", ""},
		{"ballots after the end", []any{"aCDEFGHI", "bJ"}, "carried", "a010 c100 d100 e100 f100 g100 h100 i100"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newCouncil(t)
			rival := w.propose(w.put("/secrets/a", "0"))
			id := w.propose(w.put("/secrets/a", "1"))
			for _, act := range c.acts {
				switch act := act.(type) {
				case string:
					w.say(id, act)
				case time.Duration:
					w.now = w.now.Add(act)
				case bool:
					if !act {
						w.say(rival, "ABCDEFG")
					} else if out := w.step(w.mutation(Withdraw, Withdrawal{Motion: id})).Outcomes[0]; out.Code != Applied {
						t.Fatal(out.Reason)
					}
				}
			}
			if got := w.fate(id); got != c.fate {
				t.Fatalf("it is %s", got)
			}
			if got := w.opinions(); got != c.found {
				t.Errorf("found %q, want %q", got, c.found)
			}
		})
	}
}

// TestP50LightVetoesJudgeNoAnchor: where a third or less of the anchors' weight rejects, or a required approver, a
// motion ends before the others vote, and its outcome tells nothing of anchors.
func TestP50LightVetoesJudgeNoAnchor(t *testing.T) {
	alice := testKey(t, 60)
	veto := func(num, den uint32, approvers ...Approver) func(*Policy) {
		return func(p *Policy) {
			p.Approvals[0].Num, p.Approvals[0].Den, p.Approvals[0].Approvers = num, den, approvers
		}
	}
	for name, x := range map[string]struct {
		policy func(*Policy)
		says   []string
		found  string
	}{
		"three of ten":         {veto(3, 4), []string{"DE", "abc"}, ""},
		"four of ten":          {veto(2, 3), []string{"DE", "abcf"}, "a100 b100 c100 d010 e010 f100"},
		"a required approver":  {veto(2, 3, Approver{Name: "alice", Key: alice.Public(), Share: 500_000, Required: true}), []string{"DEa", "-"}, ""},
		"with a few anchors":   {veto(2, 3, Approver{Name: "alice", Key: alice.Public(), Share: 500_000, Required: true}), []string{"DEabc", "-"}, ""},
		"of some weight alone": {veto(2, 3, Approver{Name: "alice", Key: alice.Public(), Share: 500_000}), []string{"DEa", "-"}, ""},
	} {
		w := newCouncil(t, x.policy)
		id := w.propose(w.put("/secrets/a", "1"))
		for _, who := range x.says {
			if who == "-" {
				w.cast([]votes.MotionBallot{w.ballot(alice, id, votes.Reject)})
			} else {
				w.say(id, who)
			}
		}
		if got := w.fate(id); got != "rejected" {
			t.Errorf("%s: it is %s", name, got)
		}
		if got := w.opinions(); got != x.found {
			t.Errorf("%s: found %q, want %q", name, got, x.found)
		}
	}
}

// TestP50WaitingIsNoSilence: a motion that had its approvals in time, and waits for its turn, blames no anchor as
// silent.
func TestP50WaitingIsNoSilence(t *testing.T) {
	w := newCouncil(t, func(p *Policy) { p.Limits.BlockCost, p.EpochBlocks = leastBlockCost, 400 })
	for i := range 7 {
		var ops []Op
		for k := range 100 {
			ops = append(ops, put(fmt.Sprintf("/k/%d/%02d", i, k), "v"))
		}
		w.run(w.reserving(0, w.ops(ops...)))
	}
	var ids []votes.MotionID
	for i := range 3 {
		ops := []Op{put(fmt.Sprint("/secrets/", i), "v")}
		for range 100 { // 70,000 units, of 100,000 that a block may spend
			ops = append(ops, get("/k/", "/k0"))
		}
		b := w.reserving(leastBlockCost-mutationUnit-opUnits*int64(len(ops)), w.ops(ops...))
		ids = append(ids, w.run(b).Outcomes[0].Mutation)
	}
	slices.SortFunc(ids, func(a, b votes.MotionID) int { return slices.Compare(a[:], b[:]) })
	var ballots []votes.MotionBallot
	for _, id := range ids {
		all := w.approve(id, 9)
		all[8] = w.ballot(w.keys[8], id, votes.Reject)
		ballots = append(ballots, all...)
	}
	w.now = w.now.Add(time.Second)
	w.execute(w.carrying(ballots))
	if d := w.state.Head().Docket; d.Due == 0 {
		t.Fatalf("no motion waits: %+v", d)
	}
	for w.state.Head().Docket.Due > 0 {
		w.now = w.now.Add(10 * time.Minute)
		w.execute(w.carrying(nil))
	}
	if got := w.opinions(); strings.Contains(got, "j") || !strings.Contains(got, "i030") {
		t.Errorf("found %q", got)
	}
}

// TestP50JudgementMovesBlame: the end of the epoch brings what motions found to the
// ledger, the next roster has other weights by it, and the next epoch counts anew.
func TestP50JudgementMovesBlame(t *testing.T) {
	w := newCouncil(t)
	for i := range 4 {
		w.say(w.propose(w.put(fmt.Sprint("/secrets/", i), "1")), "abCDEFGHIJ")
	}
	if got := w.opinions(); !strings.HasPrefix(got, "a040 b040 c400") {
		t.Fatalf("found %q", got)
	}
	before, err := w.state.Ledger()
	if err != nil {
		t.Fatal(err)
	}
	var changes []trust.Change
	for first := w.state.Head().Under; w.state.Head().Under == first; {
		w.now = w.now.Add(time.Second)
		changes = append(changes, w.execute(NewBlock(w.block(nil).Header, nil, Evidence{})).Trust...)
	}
	if got := w.opinions(); got != "" {
		t.Errorf("the next epoch begins with %q", got)
	}
	after, err := w.state.Ledger()
	if err != nil {
		t.Fatal(err)
	}
	p := w.g.Policy.Trust
	id := func(i int) aweigh.AnchorID { return w.keys[i].Public().ID() }
	for i := range w.keys {
		s, _ := after.Standing(id(i))
		if want := map[bool]trust.Score{true: trust.MaxScore / trust.Score(p.Against)}[i < 2]; s.Blame != want {
			t.Errorf("anchor %d has blame %d, want %d", i, s.Blame, want)
		}
	}
	e, err := w.state.Epoch()
	if err != nil {
		t.Fatal(err)
	}
	if a, c := e.Roster.Weights.Of(id(0)), e.Roster.Weights.Of(id(2)); a >= c {
		t.Errorf("the anchor that erred weighs %d, others %d", a, c)
	}
	var evidence []trust.Evidence
	for i := range changes {
		evidence = append(evidence, changes[i].Evidence)
	}
	if again := before.Apply(p, evidence...); again.Digest() != after.Digest() {
		t.Error("replayed, the evidence gives another ledger")
	}
	if !slices.ContainsFunc(changes, func(c trust.Change) bool {
		return strings.Contains(c.Reason, "blame 0 -> 31250: -0 with 0 of 4 outcomes, +31250 against 4")
	}) {
		t.Errorf("no reason tells of the blame: %v", changes)
	}
}

// TestP50ShortEpochsJudge: an epoch that is too short to count attendance judges all the same.
func TestP50ShortEpochsJudge(t *testing.T) {
	w := newCouncil(t, func(p *Policy) { p.EpochBlocks = 3 })
	w.say(w.propose(w.put("/secrets/a", "1")), "abCDEFGHIJ")
	w.turn()
	l, err := w.state.Ledger()
	if err != nil {
		t.Fatal(err)
	}
	if s, _ := l.Standing(w.keys[0].Public().ID()); s.Blame == 0 || s.Score != 500_000 {
		t.Errorf("%+v", s)
	}
}

// TestTalliesHaveOneEncoding: what found leaves is read back, and nothing else is.
func TestTalliesHaveOneEncoding(t *testing.T) {
	w := newCouncil(t)
	w.say(w.propose(w.put("/secrets/a", "1")), "abCDEFGHIJ")
	tally, err := w.state.count()
	if err != nil {
		t.Fatal(err)
	}
	raw := tally.encode()
	again, err := decodeTally(raw)
	if err != nil || string(again.encode()) != string(raw) || again.judged[0] != tally.judged[0] {
		t.Fatalf("%v, %+v", err, again)
	}
	at := len(raw) - 10*14
	for name, spoil := range map[string]func([]byte) []byte{
		"cut short":       func(b []byte) []byte { return b[:len(b)-1] },
		"longer":          func(b []byte) []byte { return append(b, 0) },
		"another count":   func(b []byte) []byte { b[at-1]--; return b },
		"a seat twice":    func(b []byte) []byte { b[at+14+1] = 0; return b },
		"no such seat":    func(b []byte) []byte { b[len(b)-13] = 10; return b },
		"no opinions":     func(b []byte) []byte { copy(b[at+2:at+14], make([]byte, 12)); return b },
		"without a count": func(b []byte) []byte { return b[:at-2] },
	} {
		if _, err := decodeTally(spoil(slices.Clone(raw))); err == nil {
			t.Errorf("%s: it is read", name)
		}
	}
}
