package model

import (
	"fmt"
	"slices"

	"github.com/aweigh/aweigh/scope"
)

// entriesFor are those of the policy's authors that are about the author of a mutation.
func (m *Model) entriesFor(mut *scope.CheckedMutation) (all []scope.Author) {
	_, seated := m.seat(mut.Author)
	for _, a := range m.block.policy.Authors {
		if a.Who == scope.Anyone || a.Who == scope.Anchors && seated || a.Who == scope.OneKey && a.Key.ID() == mut.Author {
			all = append(all, a)
		}
	}
	return all
}

// mayDo reports whether an entry permits the author of a mutation to use a verb on a range of keys; no key stands for
// the whole scope.
func (m *Model) mayDo(mut *scope.CheckedMutation, verb string, key, end []byte) bool {
	return slices.ContainsFunc(m.entriesFor(mut), func(a scope.Author) bool {
		if len(a.Verbs) > 0 && !slices.Contains(a.Verbs, verb) {
			return false
		}
		if len(a.Prefixes) == 0 {
			return true
		}
		return len(key) > 0 && slices.ContainsFunc(a.Prefixes, func(prefix []byte) bool { return scope.Covers(prefix, key, end) })
	})
}

// authorized reports why the policy's authors do not permit a mutation, whatever its keys.
func (m *Model) authorized(mut *scope.CheckedMutation) error {
	if slices.Contains([]scope.Class{scope.Govern, scope.Withdraw, scope.Permit}, mut.Class) {
		return nil
	}
	all := m.entriesFor(mut)
	if len(all) == 0 {
		return fmt.Errorf("%w: the policy does not list this author", scope.ErrDenied)
	}
	if mut.Class == scope.Compact && !m.mayDo(mut, "compact", nil, nil) {
		return fmt.Errorf("%w: the policy does not permit this author to compact", scope.ErrDenied)
	}
	leases := func(a scope.Author) bool { return len(a.Verbs) == 0 || slices.Contains(a.Verbs, "lease") }
	if mut.Class == scope.Lease && !slices.ContainsFunc(all, leases) {
		return fmt.Errorf("%w: the policy does not permit this author to lease", scope.ErrDenied)
	}
	return nil
}

// authorizes reports why the policy's authors do not permit one change of a mutation.
func (m *Model) authorizes(mut *scope.CheckedMutation, c change) error {
	verb := "put"
	if c.deletes {
		verb = "delete"
	}
	if mut.Class == scope.Name && mut.Naming.Kind != scope.Rollback {
		verb = "alias"
	}
	if mut.Class == scope.Act {
		verb = mut.Action.Verb
	}
	if m.mayDo(mut, verb, c.key, c.end) {
		return nil
	}
	if len(c.key) > 64 {
		return fmt.Errorf("%w: the policy does not permit this author to %s %q…", scope.ErrDenied, verb, c.key[:64])
	}
	return fmt.Errorf("%w: the policy does not permit this author to %s %q", scope.ErrDenied, verb, c.key)
}
