//go:build !noverbs

package action_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/aweigh/aweigh/action"
)

func TestTablesAreChecked(t *testing.T) {
	good := action.Table{{Verb: "pay", Class: action.Write}, {Verb: "read", Class: action.Read}, {Verb: "write", Class: action.Write, When: "caller.weight > 0"}}
	if err := good.Check(); err != nil {
		t.Error(err)
	}
	for want, bad := range map[string]action.Table{
		"not distinct and in order":                      {{Verb: "pay", Class: action.Write}, {Verb: "pay", Class: action.Read}},
		"lower-case word":                                {{Verb: "Pay", Class: action.Write}},
		"an empty action":                                {{Class: action.Write}},
		"of class 9":                                     {{Verb: "pay", Class: 9}},
		"read is of class read":                          {{Verb: "read", Class: action.Write}},
		"write is of class write":                        {{Verb: "write", Class: action.Signal}},
		"pay: action: not a predicate: line 1, column 1": {{Verb: "pay", Class: action.Write, When: "1.0 > 0.5"}},
		"513 bytes":                                      {{Verb: "pay", Class: action.Write, When: strings.Repeat(" ", 509) + "true"}},
	} {
		if err := bad.Check(); !errors.Is(err, action.ErrRule) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if err := make(action.Table, action.MaxRules+1).Check(); err == nil {
		t.Error("a table without bound")
	}
}

func TestRulesAreSetAndDropped(t *testing.T) {
	var table action.Table
	for _, verb := range []string{"pay", "own", "wave", "pay"} {
		table = table.With(action.Rule{Verb: verb, Class: action.Write, When: "now > " + verb[:1]})
	}
	if len(table) != 3 || table[0].Verb != "own" || table[2].Verb != "wave" {
		t.Errorf("%v", table)
	}
	rest, ok := table.Without("pay")
	if _, found := rest.Find("pay"); !ok || found || len(rest) != 2 || len(table) != 3 {
		t.Errorf("%v of %v", rest, table)
	}
	if _, ok := rest.Without("pay"); ok {
		t.Error("dropped twice")
	}
}

func TestUnknownVerbsAreDeniedWhereItIsDecided(t *testing.T) {
	r := action.Prepare(action.Table{{Verb: "pay", Class: action.Write, When: "caller.anchor == 'treasury'"}, {Verb: "wave", Class: action.Signal}})
	nonMember := facts()
	nonMember.Caller.Anchor = ""
	as := func(f *action.Facts, verb string) *action.Facts {
		g := *f
		g.Verb = verb
		return &g
	}
	for _, c := range []struct {
		name    string
		got     action.Verdict
		allowed bool
		class   action.Class
		why     string
	}{
		{"a rule that holds", r.Judge(facts()), true, action.Write, ""},
		{"one that does not", r.Judge(nonMember), false, action.Write, "the rule does not hold: pay (write) when caller.anchor == 'treasury'"},
		{"always", r.Judge(as(nonMember, "wave")), true, action.Signal, ""},
		{"unknown", r.Judge(as(facts(), "own")), false, 0, "no rule knows the verb own"},
		{"read without a rule", r.Judge(as(facts(), "read")), true, action.Read, ""},
		{"write without a rule", r.Judge(as(facts(), "write")), true, action.Write, ""},
		{"no table at all", action.Prepare(nil).Judge(facts()), false, 0, "no rule knows the verb pay"},
		{"no table on the way", action.Prepare(nil).Pass(facts()), true, 0, ""},
		{"no rule on the way", r.Pass(as(facts(), "own")), true, 0, ""},
		{"a rule on the way", r.Pass(nonMember), false, action.Write, "the rule does not hold: pay (write) when caller.anchor == 'treasury'"},
	} {
		if c.got.Allowed != c.allowed || c.got.Class != c.class || c.got.Why != c.why {
			t.Errorf("%s: %+v", c.name, c.got)
		}
	}
}
