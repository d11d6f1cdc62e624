package scope

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/aweigh/aweigh/action"
	"github.com/aweigh/aweigh/internal/canon"
)

// An approval can name verbs: then it is about actions that these verbs ask for, and about no other change of the same
// keys. Of the approvals that cover a key, that of the longest prefix decides; of two with one prefix, the one that
// names the verb.

// maxApprovalVerbs bounds the verbs of one approval.
const maxApprovalVerbs = 16

// binds reports whether an approval is about what a verb asks for; "" is any way of changing keys but an action.
func (a *Approval) binds(verb string) bool {
	return len(a.Verbs) == 0 || verb != "" && slices.Contains(a.Verbs, verb)
}

// ofVerbs is like "changes by pay, refund".
func (a *Approval) ofVerbs() string {
	if len(a.Verbs) == 0 {
		return a.Matter.String()
	}
	return fmt.Sprintf("%s by %s", a.Matter, strings.Join(a.Verbs, ", "))
}

// checkVerbs reports whether an approval can name its verbs.
func (a *Approval) checkVerbs() error {
	switch {
	case len(a.Verbs) == 0:
		return nil
	case a.Matter != Changes:
		return fmt.Errorf("verbs put values, so an approval that names verbs is one of %s", Changes)
	case len(a.Verbs) > maxApprovalVerbs:
		return fmt.Errorf("%d verbs, at most %d are taken", len(a.Verbs), maxApprovalVerbs)
	}
	for i, verb := range a.Verbs {
		if err := action.CheckVerb(verb); err != nil {
			return err
		}
		if i > 0 && a.Verbs[i-1] >= verb {
			return errors.New("its verbs are not distinct and in order")
		}
	}
	return nil
}

// verbsOf reports why an approval of a policy names verbs that put nothing there.
func (p *Policy) verbsOf(a *Approval) error {
	for _, verb := range a.Verbs {
		switch r, ok := p.Actions.Find(verb); {
		case verb == writeVerb:
			return fmt.Errorf("the verb %q stands for every way to put a key; an approval without verbs is that", verb)
		case !ok:
			return fmt.Errorf("the policy has no rule about the verb %q; give it one first (aweigh policy action set %s --class write)", verb, verb)
		case ok && r.Class != action.Write:
			return fmt.Errorf("the verb %q is of class %s, and only verbs of class %s can wait for approval", verb, r.Class, action.Write)
		}
	}
	return nil
}

// shares reports whether two approvals of one matter and prefix name one verb, or both none.
func (a *Approval) shares(b *Approval) bool {
	return len(a.Verbs) == 0 && len(b.Verbs) == 0 ||
		slices.ContainsFunc(a.Verbs, func(verb string) bool { return slices.Contains(b.Verbs, verb) })
}

// asksBy is the verb of an action, "" for every other mutation.
func (m *Mutation) asksBy() string {
	var a Action
	if m.Class != Act || canon.Decode(m.Content, &a) != nil {
		return ""
	}
	return a.Verb
}

// asksBy is that of the Mutation, which is decoded.
func (m *CheckedMutation) asksBy() string {
	if m.Action == nil {
		return ""
	}
	return m.Action.Verb
}

// CoversVerb is the approval that an action with a verb needs which puts a key; nil if it needs none.
func (p *Policy) CoversVerb(key []byte, verb string) *Approval {
	a, _ := p.longest(&Op{Key: key}, false, verb) // of one key, no two that contradict each other
	return a
}
