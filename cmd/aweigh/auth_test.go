package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/internal/show"
	"github.com/aweigh/aweigh/scope"
)

// TestAliasesWaitForWhatTheyChange: under an approval of deletions, a change of names waits only if it moves or removes
// the name.
func TestAliasesWaitForWhatTheyChange(t *testing.T) {
	of := func(m scope.Matter) scope.Approval {
		return scope.Approval{Matter: m, Prefix: []byte("/x"), Num: 1, Den: 2, Window: time.Hour}
	}
	for _, c := range []struct {
		verb        string
		approvals   []scope.Approval
		waits, some bool
	}{
		{scope.VerbAlias, []scope.Approval{of(scope.Deletions)}, false, true},
		{scope.VerbAlias, []scope.Approval{of(scope.Changes)}, true, false},
		{scope.VerbAlias, []scope.Approval{of(scope.Changes), of(scope.Deletions)}, true, true},
		{scope.VerbPut, []scope.Approval{of(scope.Deletions)}, false, false},
		{scope.VerbDelete, []scope.Approval{of(scope.Deletions)}, true, false},
	} {
		for _, class := range []string{"", "write"} {
			m := &show.May{
				Verb: c.verb, Key: []byte("/x"), Name: "alice", Entry: &scope.Author{Name: "alice"},
				Judged: &aweighv1.Said{Allowed: true, Class: class},
			}
			approvalOf(m, &scope.Policy{Approvals: c.approvals}, [][]byte{m.Key}, nil, nil)
			var text, json bytes.Buffer
			for out, format := range map[*bytes.Buffer]show.Format{&text: show.Table, &json: show.JSON} {
				if err := (show.Printer{Out: out, Format: format}).May(&aweighv1.Header{}, "policy", m); err != nil {
					t.Fatal(err)
				}
			}
			some := strings.Contains(text.String(), "to move or to remove the name waits for approval of deletions") &&
				strings.Contains(json.String(), `"removal"`)
			if m.Waits() != c.waits || some != c.some {
				t.Errorf("%s with %d approvals, class %q: waits %v, %s", c.verb, len(c.approvals), class, m.Waits(), text.String())
			}
		}
	}
}
