package policytext_test

import (
	"errors"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/aweigh/aweigh/action"
	"github.com/aweigh/aweigh/internal/policytext"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/trust"
	"github.com/aweigh/aweigh/votes"
)

// other is a policy that differs from the default in every field that can be written.
func other() scope.Policy {
	p := scope.DefaultPolicy(quorum.BFT)
	p.Rules.Notarize = quorum.Rule{Num: 3, Den: 4, MinAnchors: 1}
	p.Rules.Finalize = quorum.Rule{Num: 9, Den: 10, MinAnchors: 2}
	p.Rules.Nullify = quorum.Rule{Num: 4, Den: 5, MinAnchors: 3}
	p.EpochBlocks, p.EpochTime = 17, 90*time.Second
	p.Trust = trust.Params{
		Floor: 1, Ceiling: 2, Initial: 3, Gain: 400_000, Decay: 5, Absence: 6, Rest: 7, Lead: 8, Idle: 9, Whole: 10,
		Share: trust.Ratio{Num: 1, Den: 7}, Sponsored: trust.Ratio{Num: 1, Den: 8}, Churn: trust.Ratio{Num: 1, Den: 9},
		Probation: 11, Surety: 12, SuretyEpochs: 13,
	}
	p.Limits.Anchors, p.Limits.ValidFor, p.Limits.ScopeBytes, p.Limits.TTL, p.Limits.Rate = 99, 7*time.Hour, 1500<<20, 90*time.Second, 1234
	p.Children = scope.Bound{Depth: 3, BFT: true, Finalize: quorum.Rule{Num: 5, Den: 6, MinAnchors: 7}, Notice: 72 * time.Hour}
	key, err := votes.KeyFromSeed("ed25519", make([]byte, 32))
	if err != nil {
		panic(err)
	}
	p.Approvals = []scope.Approval{
		{Matter: scope.Changes, Prefix: []byte("/a \x00,\"/"), Num: 3, Den: 4, Anchors: 3, Window: 72 * time.Hour},
		{Matter: scope.Deletions, Num: 1, Den: 2, Window: time.Minute, Approvers: []scope.Approver{
			{Name: "alice, of \"accounts\"", Key: key.Public(), Share: 333_333, Required: true},
			{Name: "bob", Key: key.Public(), Required: true},
		}},
	}
	p.Actions = action.Table{
		{Verb: "pay", Class: action.Write, When: "caller.anchor == 'a: \"b\" # c' &&\n  object.key != '\\x00'"},
		{Verb: "wave", Class: action.Signal},
		{Verb: "yes", Class: action.Claim, When: "true"},
	}
	return p
}

// TestWhatIsWrittenIsReadBack: every field of the text counts, whatever the policy
// was before, and nothing of it is left out.
func TestWhatIsWrittenIsReadBack(t *testing.T) {
	base := scope.DefaultPolicy(quorum.BFT)
	text := policytext.Write(other(), "a\nb")
	got, err := policytext.Read([]byte(text), base)
	if err != nil || !reflect.DeepEqual(got, other()) {
		t.Errorf("%v\n%+v\nwant\n%+v", err, got, other())
	}
	if diff := policytext.Diff(base, other()); len(diff) != 2+len(regexp.MustCompile(`(?m)^  "?[a-z_]+"?: `).FindAllString(text, -1)) {
		t.Errorf("%d fields differ of\n%s", len(diff), text)
	}
	// A type that gains a field must gain a line here, or is changed without a word.
	for _, v := range []struct {
		of   any
		want int
	}{{trust.Params{}, 17}, {quorum.Rules{}, 5}, {quorum.Rule{}, 4}, {scope.Policy{}, 9}, {action.Rule{}, 4}, {scope.Bound{}, 5}, {scope.Approval{}, 10}, {scope.Approver{}, 5}} {
		if n := reflect.TypeOf(v.of).NumField(); n != v.want {
			t.Errorf("%T has %d fields, and package policytext knows %d", v.of, n, v.want)
		}
	}
}

func TestWhatIsLeftOutStays(t *testing.T) {
	for _, text := range []string{"", "# nothing\n", "trust:\n", "epoch: {blocks: 17}\n"} {
		got, err := policytext.Read([]byte(text), other())
		if err != nil || !reflect.DeepEqual(got, other()) {
			t.Errorf("%q changes the policy: %v", text, err)
		}
	}
}

func TestMistakesAreNamed(t *testing.T) {
	for text, want := range map[string]string{
		"trust:\n  flor: 1\n":                             `line 2: trust has no field "flor"`,
		"trus:\n  floor: 1\n":                             `line 1: unknown section "trus"`,
		"trust:\n  floor: -1\n":                           `line 2: floor: "-1" is not a whole number`,
		"quorum:\n  notarize: 0.66\n":                     `line 2: notarize: "0.66" is not a part of a whole`,
		"quorum:\n  notarize: 2/0\n":                      `not a part of a whole`,
		"epoch:\n  time: 5\n":                             `line 2: time: "5" is no length of time, like 72h`,
		"epoch:\n  blocks: [1]\n":                         `line 2: blocks is one value`,
		"epoch:\n  blocks: 5\n---\nepoch:\n  blocks: 6\n": `line 3: a second document`,
		"approvals: 5":                                    `line 1: approvals is a list`,
		"approvals:\n  - threshold=3/4 window=1h for=x":   `line 2: policytext: not a policy: approval: for=x: it has no for`,
		"approvals:\n  - prefix=/a":                       `it needs threshold=`,
		"approvals:\n  - threshold=1/2 window=1h prefix":  `"prefix" is no word`,
		"epoch:\n  blocks: 1\n  blocks: 2":                `stands twice`,
		"actions: [pay]":                                  `line 1: actions is made of fields`,
		"actions:\n  pay: fly":                            `line 2: policytext: not a policy: pay: action: not a rule: "fly" is no class of actions`,
		"actions:\n  pay: write if true":                  `after the class stands "when" and a predicate, not "if true"`,
		"actions:\n  pay: write whenever":                 `after the class stands "when"`,
		"actions:\n  pay: write when":                     `after the class stands "when"`,
		"actions:\n  pay: [write]":                        `line 2: pay is one value`,
		"actions:\n  pay: write\n  pay: read":             `line 3: pay stands twice`,
		"- 1\n":                                           `made of fields`,
		"a: b: c":                                         `not a policy`,
		"children:\n  bft: 5":                             `"5" is neither true nor false`,
	} {
		_, err := policytext.Read([]byte(text), other())
		if !errors.Is(err, policytext.ErrSyntax) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
