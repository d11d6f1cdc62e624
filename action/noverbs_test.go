//go:build noverbs

package action_test

import (
	"errors"
	"testing"

	"github.com/aweigh/aweigh/action"
)

// TestWithoutTheLanguageRulesDeny: a program without the language of predicates permits nothing that it cannot read.
func TestWithoutTheLanguageRulesDeny(t *testing.T) {
	table := action.Table{{Verb: "free", Class: action.Write}, {Verb: "pay", Class: action.Write, When: "true"}}
	if err := table.Check(); !errors.Is(err, action.ErrPredicate) {
		t.Errorf("a table with an unread predicate: %v", err)
	}
	if err := table.CheckForm(); err != nil {
		t.Errorf("the form of a table: %v", err)
	}
	rules := action.Prepare(table)
	if v := rules.Judge(&action.Facts{Verb: "pay"}); v.Allowed {
		t.Error("a rule that was not read permits")
	}
	if v := rules.Judge(&action.Facts{Verb: "free"}); !v.Allowed {
		t.Errorf("a rule without a predicate denies: %s", v.Why)
	}
}
