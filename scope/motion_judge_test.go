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
