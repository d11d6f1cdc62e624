package model

import (
	"slices"

	"github.com/aweigh/aweigh/action"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/lineage"
	"github.com/aweigh/aweigh/scope"
)

// act executes an action.
func (m *Model) act(mut *scope.CheckedMutation, out *scope.Outcome) error {
	a := mut.Action
	switch {
	case a.Class == action.Signal:
		return scope.ErrSignal
	case !m.owns(a.Key, nil):
		return scope.ErrElsewhere
	case a.Class == action.Write:
		return m.transact(mut, out)
	}
	failure := m.authorizes(mut, change{key: a.Key})
	if failure == nil {
		failure = m.actable(mut)
	}
	if failure == nil {
		m.claim(a)
	}
	return failure
}

// actable reports why an action cannot be done: its rule must hold under every name of the
// object.
func (m *Model) actable(mut *scope.CheckedMutation) error {
	a := mut.Action
	v, there := m.keys()[string(a.Key)]
	known := !a.Object.IsZero()
	if !there && (known || a.Class == action.Claim) || there && known && a.Object != v.UID {
		return scope.ErrUnnamed
	}
	class, failure := m.permits(mut, a.Verb, a.Key)
	if failure == nil && class != a.Class {
		failure = scope.ErrClass
	}
	if failure != nil || !there {
		return failure
	}
	for _, h := range m.named(v).held {
		if h.key == string(a.Key) {
			continue
		}
		if failure := m.authorizes(mut, change{key: []byte(h.key)}); failure != nil {
			return failure
		}
		if _, failure := m.permits(mut, a.Verb, []byte(h.key)); failure != nil {
			return failure
		}
	}
	return nil
}

// permitted reports why the policy does not let the author of a mutation change keys: an action by its own rule, all
// else by that of the verb write.
func (m *Model) permitted(mut *scope.CheckedMutation, all []change) error {
	if mut.Class == scope.Act {
		for _, c := range all {
			if failure := m.authorizes(mut, c); failure != nil {
				return failure
			}
		}
		return m.actable(mut)
	}
	ruled := slices.ContainsFunc(m.block.policy.Actions, func(r action.Rule) bool { return r.Verb == "write" })
	for _, c := range all {
		if failure := m.authorizes(mut, c); failure != nil {
			return failure
		}
		if !ruled {
			continue
		}
		keys := [][]byte{c.key}
		if len(c.end) > 0 {
			keys = nil
			for _, kv := range pairs(m.keys(), c.key, c.end) {
				keys = append(keys, kv.Key)
			}
		}
		for _, key := range keys {
			if _, failure := m.permits(mut, "write", key); failure != nil {
				return failure
			}
		}
	}
	return nil
}

// claim enters into the history of an object that somebody claims it.
func (m *Model) claim(a *scope.Action) {
	v := m.keys()[string(a.Key)]
	m.view.objects[v.UID] = m.named(v)
	digest := v.Digest()
	m.entry(lineage.Entry{Class: lineage.Claim, Key: a.Key, Object: v.UID, Prior: digest, Posterior: digest, Reason: a.Verb}, nil)
}

// permit replaces the users and roles.
func (m *Model) permit(a *scope.Access) error {
	if m.genesis.Descent != nil {
		return scope.ErrElsewhere
	}
	if _, seated := m.seat(m.block.mutation.Author); !seated {
		return scope.ErrAccessAuthor
	}
	before := &m.view.access
	if a.Revision != before.Revision+1 {
		return scope.ErrAccessChanged
	}
	e := lineage.Entry{Class: lineage.Access, Posterior: canon.Hash("aweigh/access/1", *a)}
	if before.Revision > 1 {
		e.Prior = canon.Hash("aweigh/access/1", *before)
	}
	m.entry(e, nil)
	m.view.access = *a
	return nil
}
