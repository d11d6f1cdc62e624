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
	"github.com/aweigh/aweigh/internal/vary"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/trust"
	"github.com/aweigh/aweigh/votes"
)

// other is a policy that differs from the default in every field that can be written.
func other() scope.Policy {
	p := scope.OpenPolicy(quorum.BFT)
	p.Rules.Mode = quorum.Crash
	p.Rules.Notarize = quorum.Rule{Num: 3, Den: 4, MinAnchors: 1}
	p.Rules.Finalize = quorum.Rule{Num: 9, Den: 10, MinAnchors: 2}
	p.Rules.Nullify = quorum.Rule{Num: 4, Den: 5, MinAnchors: 3}
	p.EpochBlocks, p.EpochTime = 17, 90*time.Second
	p.Trust = trust.Params{
		Floor: 1, Ceiling: 2, Initial: 3, Gain: 400_000, Decay: 5, Absence: 6, Rest: 7, Lead: 8, Idle: 9, Whole: 10,
		Blame: 17, With: 18, Against: 14, Silent: 19, Judged: 15, Contest: trust.Ratio{Num: 1, Den: 11}, Answer: trust.Ratio{Num: 1, Den: 12},
		Share: trust.Ratio{Num: 1, Den: 7}, Sponsored: trust.Ratio{Num: 1, Den: 8}, Churn: trust.Ratio{Num: 1, Den: 9},
		Probation: 11, Surety: 12, SuretyEpochs: 13,
		Group: trust.Group{Least: 3, Most: 9, Tolerates: 2, Load: 20, Replace: 5},
	}
	p.Limits = scope.Limits{
		Anchors: 99, ValidFor: 7 * time.Hour, Pending: 720 * time.Hour, ScopeBytes: 1500 << 20, TTL: 90 * time.Second, Rate: 1234, Drift: 123 * time.Millisecond,
		KeyBytes: 1000, ValueBytes: 1 << 20, MutationBytes: 1<<20 + 1, BundleBytes: 2 << 20, BlockBytes: 3 << 20, BlockMutations: 77, TxnOps: 78, JustificationBytes: 79,
	}
	p.Topology = scope.Topology{Split: scope.ConductAct, Rate: 21, Epochs: 22, Rest: 23, Most: 24}
	p.Children = scope.Bound{Depth: 3, BFT: true, Finalize: quorum.Rule{Num: 5, Den: 6, MinAnchors: 7}, Notice: 72 * time.Hour}
	key, err := votes.KeyFromSeed("ed25519", make([]byte, 32))
	if err != nil {
		panic(err)
	}
	p.Approvals = []scope.Approval{
		{Matter: scope.Changes, Prefix: []byte("/a \x00,\"/"), Num: 3, Den: 4, Anchors: 3, Window: 72 * time.Hour, Verbs: []string{"pay", "yes"},
			Bounds: []scope.ImpactBound{{Of: scope.ChangedKeys, Limit: 7}, {Of: scope.DeletedKeys}}},
		{Matter: scope.Deletions, Num: 1, Den: 2, Window: time.Minute, Approvers: []scope.Approver{
			{Name: "alice, of \"accounts\"", Key: key.Public(), Share: 333_333, Required: true},
			{Name: "bob", Key: key.Public(), Required: true},
		}},
		{Matter: scope.Changes, Prefix: []byte("/prod/"), Den: 1, Window: time.Minute, StepUp: true, Approvers: []scope.Approver{{Name: "bob", Key: key.Public()}}},
	}
	p.Authors = []scope.Author{
		{Name: "anchors", Who: scope.Anchors, Prefixes: [][]byte{[]byte("/c/")}, Verbs: []string{"put"}},
		{Name: "bob, \"b\"", Who: scope.OneKey, Key: key.Public(), Prefixes: [][]byte{[]byte("/a \x00,\"/"), []byte("n/")}, Verbs: []string{"delete", "pay"},
			Quota: scope.Quota{Rate: 5, Bytes: 3 << 20, Leases: 7, Motions: 9}},
	}
	p.Partitions = []scope.Partition{{Prefix: []byte("/ship \x00,\"/"), Num: 2, Den: 5, After: 10 * time.Minute, Gather: time.Minute, Window: 168 * time.Hour}}
	p.Transfers = true
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
	base := scope.OpenPolicy(quorum.BFT)
	text := policytext.Write(other(), "a\nb")
	got, err := policytext.Read([]byte(text), base)
	if err != nil || !reflect.DeepEqual(got, other()) {
		t.Errorf("%v\n%+v\nwant\n%+v", err, got, other())
	}
	if diff := policytext.Diff(base, other()); len(diff) != 7+len(regexp.MustCompile(`(?m)^  "?[a-z_]+"?: `).FindAllString(text, -1)) {
		t.Errorf("%d fields differ of\n%s", len(diff), text)
	}
}

// TestEveryFieldOfAPolicyIsWritten: a field that is changed changes the text, its
// differences and its fields, and each of them gives the policy back. So a type that
// gains a field must gain a line here.
func TestEveryFieldOfAPolicyIsWritten(t *testing.T) {
	base := other()
	base.Approvals[0].Approvers = base.Approvals[1].Approvers
	base.Approvals[1].Verbs, base.Approvals[2].Verbs = []string{"pay"}, []string{"pay"}
	for i := range base.Approvals {
		base.Approvals[i].Bounds = []scope.ImpactBound{{Of: scope.DeletedKeys, Limit: 7}}
	}
	// The finalize and the sponsor of an approval are zero in a policy (scope.Policy.Check), a scheme goes with its
	// bytes, and an author has a key only if it is one key.
	skip := []string{"].Finalize.Num", "].Finalize.Den", "].Finalize.MinAnchors", "].Sponsor", ".Key.Scheme", ".Key.Bytes", ".Who"}
	vary.Each(base, skip, func(path string, p scope.Policy) {
		if policytext.Write(p, "") == policytext.Write(base, "") {
			t.Errorf("%s: the text does not show it", path)
		}
		if reflect.DeepEqual(policytext.Fields(p), policytext.Fields(base)) {
			t.Errorf("%s: the fields do not show it", path)
		}
		diff := policytext.Diff(base, p)
		if len(diff) == 0 {
			t.Errorf("%s: the difference does not show it", path)
		}
		if back, err := policytext.Patch(base, diff); err != nil || !strings.Contains(path, ".Matter") && !strings.Contains(path, ".Prefix") && !strings.Contains(path, ".Verbs") && back.Hash() != p.Hash() {
			t.Errorf("%s: the difference %v does not give it back: %v", path, diff, err)
		}
		if back, err := policytext.Patch(scope.Policy{}, policytext.Diff(scope.Policy{}, p)); err != nil || back.Hash() != p.Hash() {
			t.Errorf("%s: all that differs from nothing does not give it back: %v", path, err)
		}
		if back, err := policytext.Read([]byte(policytext.Write(p, "")), scope.Policy{}); err != nil || back.Hash() != p.Hash() {
			t.Errorf("%s: the text does not give it back: %v", path, err)
		}
	})
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
		"trust:\n  flor: 1\n":                             `line 2: trust has no field "flor"; did you mean floor?`,
		"trus:\n  floor: 1\n":                             `line 1: unknown section "trus"; did you mean trust?`,
		"trust:\n  floor: -1\n":                           `line 2: floor: "-1" is not a whole number`,
		"quorum:\n  notarize: 0.66\n":                     `line 2: notarize: "0.66" is not a part of a whole`,
		"quorum:\n  notarize: 2/0\n":                      `not a part of a whole`,
		"epoch:\n  time: 5\n":                             `line 2: time: "5" is not a length of time, like 72h`,
		"epoch:\n  blocks: [1]\n":                         `line 2: blocks is one value`,
		"epoch:\n  blocks: 5\n---\nepoch:\n  blocks: 6\n": `line 3: a second document`,
		"partitions:\n  - prefix=/a share=1/2":            `line 2: policytext: not a policy: partition: it needs after=…`,
		"partitions:\n  - prefix=/a shar=1/2":             `it has no shar; did you mean share?`,
		"approvals: 5":                                    `line 1: approvals is a list`,
		"approvals:\n  - threshhold=3/4 window=1h":        "it has no threshhold; did you mean threshold?",
		"approvals:\n  - threshold=3/4 window=1h for=x":   `line 2: policytext: not a policy: approval: for=x: it has no for`,
		"approvals:\n  - prefix=/a":                       `it needs threshold=`,
		"approvals:\n  - threshold=1/2 window=1h prefix":  `"prefix" is not a word`,
		"approvals:\n  - step-up=bob window=5m":           `an approver is NAME,KEY`,
		"approvals:\n  - step-up=b,ed25519:O2onvM62pC1io6jQKm8Nc2UyFXcd4kOmOsBIoYtZ2ik window=5m approver=c,ed25519:O2onvM62pC1io6jQKm8Nc2UyFXcd4kOmOsBIoYtZ2ik": `approver and step-up exclude each other`,
		"epoch:\n  blocks: 1\n  blocks: 2":    `stands twice`,
		"actions: [pay]":                      `line 1: actions is made of fields`,
		"actions:\n  pay: fly":                `line 2: policytext: not a policy: pay: action: not a rule: "fly" is no class of actions`,
		"actions:\n  pay: write if true":      `after the class stands "when" and a predicate, not "if true"`,
		"actions:\n  pay: write whenever":     `after the class stands "when"`,
		"actions:\n  pay: write when":         `after the class stands "when"`,
		"actions:\n  pay: [write]":            `line 2: pay is one value`,
		"actions:\n  pay: write\n  pay: read": `line 3: pay stands twice`,
		"- 1\n":                               `made of fields`,
		"a: b: c":                             `not a policy`,
		"children:\n  bft: 5":                 `"5" is neither true nor false`,
	} {
		_, err := policytext.Read([]byte(text), other())
		if !errors.Is(err, policytext.ErrSyntax) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// TestErrorsNameFieldsAsTheTextDoes: people look for limits.drift, with a unit, and not for a field of a program in
// nanoseconds.
func TestErrorsNameFieldsAsTheTextDoes(t *testing.T) {
	for text, want := range map[string]string{
		"limits:\n  drift: 5s":                  "limits.drift is 5s; it must lie between 1ns and 1s",
		"limits:\n  valid_for: 48h":             "limits.valid_for is 48h0m0s; it must lie between 1ns and 24h0m0s",
		"limits:\n  key_bytes: 0":               "limits.key_bytes is 0; it must lie between 1 and ",
		"limits:\n  mutation_bytes: 1":          "it must lie between 1 and 1, which is limits.mutation_bytes",
		"limits:\n  block_cost: 1":              "limits.block_cost is 1; it must lie between 100000 and ",
		"limits:\n  drift: 1s\n  valid_for: 1s": "limits.drift is 1s, too large for mutations that are valid for at most 1s",
	} {
		p, err := policytext.Read([]byte(text), scope.OpenPolicy(quorum.BFT))
		if err == nil {
			err = p.Check()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
