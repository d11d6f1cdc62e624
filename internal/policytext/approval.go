package policytext

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
)

// ApprovalHelp states how approvals are written.
const ApprovalHelp = `of=changes (the default) or of=deletions, of keys with prefix=/secrets/, or of all; or of=policies,
or of=membership, which can only require more than finalization does; verbs=pay,refund, if it is about these verbs of
"aweigh do" alone;
threshold=3/4, the least share of the whole weight that must approve; min-anchors=3; window=72h, how
long a motion stays open; and approver=NAME,KEY for each key that votes beside the anchors, with
,weight=25% (of the weight of all anchors) or ,required, or both. KEY is like ed25519:… or ml-dsa-65:….
at-most=keys:10,deleted:0 bounds what one motion changes: keys (under all names), deleted, ended (objects), bytes
(written); of policies and membership: rights, and at-least=stop:2,break:3, the fewest anchors that can stop or
break the scope.
A step-up has no threshold, min-anchors and approver, but step-up=NAME,KEY for each key that may be the second
person: any one of them but the author approves, anchors do not vote, and window=5m is at most 1h.`

var matters = []scope.Matter{scope.Changes, scope.Deletions, scope.Policies, scope.Membership}

// writeApproval is an approval as ParseApproval reads it.
func writeApproval(a scope.Approval) string {
	var words []string
	if a.Matter != scope.Changes {
		words = append(words, "of="+a.Matter.String())
	}
	if len(a.Prefix) > 0 {
		words = append(words, "prefix="+quoted(string(a.Prefix)))
	}
	if len(a.Verbs) > 0 {
		words = append(words, "verbs="+strings.Join(a.Verbs, ","))
	}
	if !a.StepUp || a.Num != 0 || a.Den != 1 {
		words = append(words, fmt.Sprintf("threshold=%d/%d", a.Num, a.Den))
	}
	if a.Anchors > 0 {
		words = append(words, fmt.Sprintf("min-anchors=%d", a.Anchors))
	}
	words = append(words, "window="+a.Window.String())
	words = append(words, writeBounds(a.Bounds)...)
	for _, p := range a.Approvers {
		word := "approver="
		if a.StepUp {
			word = "step-up="
		}
		w := word + quoted(p.Name) + "," + p.Key.String()
		if p.Share > 0 {
			w += ",weight=" + strconv.FormatFloat(float64(p.Share)/10_000, 'f', -1, 64) + "%"
		}
		if p.Required {
			w += ",required"
		}
		words = append(words, w)
	}
	return strings.Join(words, " ")
}

// inWords is a comment on an approval whose words do not explain themselves.
func inWords(a *scope.Approval) string {
	if !a.StepUp {
		return ""
	}
	names := make([]string, len(a.Approvers))
	for i := range a.Approvers {
		names[i] = quoted(a.Approvers[i].Name)
	}
	return fmt.Sprintf(" # each change waits for a second person: %s", strings.Join(names, " or "))
}

// quoted is a text without spaces or commas: as it is, or quoted and escaped.
func quoted(s string) string {
	if s != "" && !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' || r == ',' || r == '"' || r == '\\' }) {
		return s
	}
	q := strconv.QuoteToASCII(s)
	return strings.NewReplacer(" ", `\x20`, ",", `\x2c`).Replace(q)
}

func unquoted(s string) (string, error) {
	if strings.HasPrefix(s, `"`) {
		return strconv.Unquote(s)
	}
	return s, nil
}

// ParseApproval reads one approval: words like prefix=/secrets/, in any order, see
// ApprovalHelp. Errors wrap ErrSyntax; scope.Policy.Check checks whether a
// scope can have it.
func ParseApproval(text string) (a scope.Approval, err error) {
	a.Matter = scope.Changes
	seen := make(map[string]bool)
	for word := range strings.FieldsSeq(text) {
		key, value, _ := strings.Cut(word, "=")
		if seen[key] && key != "approver" && key != "step-up" {
			return a, fmt.Errorf("%w: approval: %s stands twice", ErrSyntax, key)
		}
		if seen[key] = true; value == "" {
			return a, fmt.Errorf("%w: approval: %q is not a word like prefix=/secrets/", ErrSyntax, word)
		}
		if err := approvalWord(&a, key, value); err != nil {
			return a, fmt.Errorf("%w: approval: %s: %w", ErrSyntax, word, err)
		}
	}
	needs := []string{"threshold", "window"}
	if a.StepUp {
		if needs = needs[1:]; !seen["threshold"] {
			a.Den = 1
		}
		if seen["approver"] {
			return a, fmt.Errorf("%w: approval: approver and step-up exclude each other: one second person decides alone", ErrSyntax)
		}
	}
	for _, need := range needs {
		if !seen[need] {
			return a, fmt.Errorf("%w: approval: it needs %s=…; see --help", ErrSyntax, need)
		}
	}
	return a, nil
}

func approvalWord(a *scope.Approval, key, value string) (err error) {
	switch key {
	case "of":
		for _, m := range matters {
			if m.String() == value {
				a.Matter = m
				return nil
			}
		}
		return fmt.Errorf("it is of changes, deletions, policies or membership")
	case "prefix":
		prefix, err := unquoted(value)
		a.Prefix = []byte(prefix)
		return err
	case "verbs":
		a.Verbs = strings.Split(value, ",")
		slices.Sort(a.Verbs)
	case "threshold":
		a.Num, a.Den, err = part(value)
	case "min-anchors":
		n, numErr := strconv.ParseUint(value, 10, 31)
		if a.Anchors = uint32(n); numErr != nil {
			return fmt.Errorf("%q is not a whole number from 0 on, or too large", value)
		}
	case "window":
		a.Window, err = span(value)
	case mostWord, leastWord:
		a.Bounds, err = addBounds(a.Bounds, key, value)
	case "approver", "step-up":
		var p scope.Approver
		p, err = approver(value)
		a.Approvers = append(a.Approvers, p)
		a.StepUp = a.StepUp || key == "step-up"
	default:
		return fmt.Errorf("it has no %s%s", key, meant(key, []string{
			"of", "prefix", "verbs", "threshold", "min-anchors", "window", mostWord, leastWord, "approver", "step-up",
		}))
	}
	return err
}

func approver(text string) (p scope.Approver, err error) {
	parts := strings.Split(text, ",")
	if len(parts) < 2 {
		return p, fmt.Errorf("an approver is NAME,KEY and then weight=25%% or required")
	}
	if p.Name, err = unquoted(parts[0]); err != nil {
		return p, err
	}
	if p.Key, err = votes.ParsePublicKey(parts[1]); err != nil {
		return p, fmt.Errorf("approver %q: %w", p.Name, err)
	}
	for _, more := range parts[2:] {
		weight, isWeight := strings.CutPrefix(more, "weight=")
		switch {
		case more == "required":
			p.Required = true
		case isWeight && strings.HasSuffix(weight, "%"):
			percent, err := strconv.ParseFloat(strings.TrimSuffix(weight, "%"), 64)
			if err != nil || !(percent >= 0 && percent <= 1000) {
				return p, fmt.Errorf("%q is not a percentage of the anchors' weight, from 0%% to 1000%%", weight)
			}
			p.Share = uint32(math.Round(percent * 10_000))
		default:
			return p, fmt.Errorf("%q: an approver has weight=25%%, or is required", more)
		}
	}
	return p, nil
}

// SetApproval is a list of approvals with one added, or in the place of that of the
// same matter, prefix and verbs.
func SetApproval(all []scope.Approval, a scope.Approval) []scope.Approval {
	all = slices.Clone(all)
	for i := range all {
		if same(&all[i], &a) {
			all[i] = a
			return all
		}
	}
	return append(all, a)
}

// dropApproval is a list without the approvals below a prefix, of a matter; ok
// reports that there was one.
func dropApproval(all []scope.Approval, a scope.Approval) (rest []scope.Approval, ok bool) {
	rest = slices.DeleteFunc(slices.Clone(all), func(b scope.Approval) bool { return same(&a, &b) })
	return rest, len(rest) < len(all)
}

func same(a, b *scope.Approval) bool {
	return a.Matter == b.Matter && bytes.Equal(a.Prefix, b.Prefix) && slices.Equal(a.Verbs, b.Verbs)
}

// fieldOf is what an approval is called among the fields of a policy.
func fieldOf(a *scope.Approval) string {
	if a.Matter == scope.Policies || a.Matter == scope.Membership {
		return "approvals of " + a.Matter.String()
	}
	if len(a.Verbs) > 0 {
		return fmt.Sprintf("approvals of %s by %s below %q", a.Matter, strings.Join(a.Verbs, ","), a.Prefix)
	}
	return fmt.Sprintf("approvals of %s below %q", a.Matter, a.Prefix)
}

// diffApprovals lists the approvals that differ.
func diffApprovals(from, to []scope.Approval) (changes []Change) {
	find := func(all []scope.Approval, a *scope.Approval) string {
		for i := range all {
			if same(&all[i], a) {
				return writeApproval(all[i])
			}
		}
		return absent
	}
	add := func(a *scope.Approval) {
		x, y := find(from, a), find(to, a)
		if x != y {
			changes = append(changes, Change{fieldOf(a), x, y, "the required approval"})
		}
	}
	for i := range from {
		add(&from[i])
	}
	for i := range to {
		if find(from, &to[i]) == absent {
			add(&to[i])
		}
	}
	if a, b := order(from, to), order(to, from); a != b {
		changes = append(changes, Change{"approvals", a, b, "their order, which changes nothing but the policy's identity"})
	}
	return changes
}

// order names those of a policy's approvals that another has, too, as they stand.
func order(of, other []scope.Approval) string {
	var names []string
	for i := range of {
		if slices.ContainsFunc(other, func(a scope.Approval) bool { return same(&a, &of[i]) }) {
			names = append(names, fieldOf(&of[i]))
		}
	}
	return strings.Join(names, "; ")
}
