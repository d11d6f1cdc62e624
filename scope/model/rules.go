package model

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"cel.dev/cel-go/cel"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/action"
	"github.com/aweigh/aweigh/scope"
)

// language is the standard library of CEL with the names that predicates know.
func language() (*cel.Env, error) {
	options := []cel.EnvOption{cel.StdLib()}
	for _, name := range []string{"verb", "caller.id", "caller.anchor", "scope.prefix", "scope.mode", "object.key", "object.uid"} {
		options = append(options, cel.Variable(name, cel.StringType))
	}
	for _, name := range []string{"now", "caller.weight", "scope.epoch", "scope.height", "object.version"} {
		options = append(options, cel.Variable(name, cel.IntType))
	}
	return cel.NewCustomEnv(append(options, cel.Variable("object.exists", cel.BoolType), cel.Variable("object.value", cel.BytesType))...)
}

// program is a predicate that can be asked.
func (m *Model) program(when string) (p cel.Program, err error) {
	if p = m.programs[when]; p != nil {
		return p, nil
	}
	if m.language == nil {
		if m.language, err = language(); err != nil {
			return nil, err
		}
	}
	tree, issues := m.language.Compile(when)
	if issues.Err() != nil {
		return nil, issues.Err()
	}
	p, err = m.language.Program(tree)
	m.programs[when] = p
	return p, err
}

// permits asks the policy about a verb on a key, and charges the mutation for it. It says of which class the verb is.
func (m *Model) permits(mut *scope.CheckedMutation, verb string, key []byte) (action.Class, error) {
	v, there := m.keys()[string(key)]
	if failure := m.spend(lookCost(len(v.Value)) + m.steps(verb)); failure != nil {
		return 0, failure
	}
	i := slices.IndexFunc(m.block.policy.Actions, func(r action.Rule) bool { return r.Verb == verb })
	switch {
	case i < 0 && verb == "write":
		return action.Write, nil
	case i < 0 && verb == "read":
		return action.Read, nil
	case i < 0:
		return 0, fmt.Errorf("%w: no rule knows the verb %s", scope.ErrDenied, verb)
	}
	rule := &m.block.policy.Actions[i]
	when := "always"
	if rule.When != "" {
		when = "when " + rule.When
	}
	said := fmt.Sprintf("%s (%s) %s", verb, rule.Class, when)
	holds, known := true, true
	if rule.When != "" {
		holds, known = m.predicate(mut, rule, &v, key, there)
	}
	switch {
	case !known:
		return 0, fmt.Errorf("%w: the rule cannot be worked out: %s", scope.ErrDenied, said)
	case !holds:
		return 0, fmt.Errorf("%w: the rule does not hold: %s", scope.ErrDenied, said)
	}
	return rule.Class, nil
}

// predicate works a predicate out; known is false if that cannot be done.
func (m *Model) predicate(mut *scope.CheckedMutation, rule *action.Rule, v *scope.KeyValue, key []byte, there bool) (holds, known bool) {
	if len(v.Value) > 4096 && strings.Contains(rule.When, "object.value") {
		return false, false
	}
	p, err := m.program(rule.When)
	if err != nil {
		return false, false
	}
	h := &m.block.Header
	uid := ""
	if there {
		uid = v.UID.String()
	}
	anchor, weight := m.anchor(mut.Author)
	out, _, err := p.Eval(map[string]any{
		"verb": rule.Verb, "now": int64(h.Time) / int64(time.Second),
		"caller.id": mut.Author.String(), "caller.anchor": anchor, "caller.weight": weight,
		"scope.prefix": string(m.genesis.Prefix()), "scope.mode": m.block.policy.Rules.Mode.String(),
		"scope.epoch": int64(h.Epoch), "scope.height": int64(h.Height),
		"object.key": string(key), "object.exists": there, "object.uid": uid, "object.version": v.Version, "object.value": v.Value,
	})
	if err != nil {
		return false, false
	}
	holds, _ = out.Value().(bool)
	return holds, true
}

// anchor is the name and the weight of the anchor that acts with a key: its own, or that of its node.
func (m *Model) anchor(author aweigh.Hash) (name string, weight int64) {
	if seat, ok := m.seat(author); ok {
		r := &m.block.told.Epoch.Roster
		return r.Anchors[seat].Name, int64(r.Weights.Of(r.Anchors[seat].Key.ID()))
	}
	return "", 0
}

// seat is the seat of the anchor that acts with a key.
func (m *Model) seat(author aweigh.Hash) (seat int, ok bool) {
	all := m.block.told.Epoch.Roster.Anchors
	if i := slices.IndexFunc(all, func(a scope.Anchor) bool { return a.Key.ID() == author }); i >= 0 {
		return i, true
	}
	for i := len(all) - 1; i >= 0; i-- {
		if key, ok := scope.PeerKey(all[i].Peer); ok && key.ID() == author {
			return i, true
		}
	}
	return 0, false
}
