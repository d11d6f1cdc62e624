package sim

import (
	"slices"
	"strings"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/internal/must"
	"github.com/aweigh/aweigh/lineage"
	"github.com/aweigh/aweigh/scope"
)

// rightful checks that the rights of the key that signed a change, by the entries of the policy of the block's epoch,
// permit all that the block changed in its name (P44, P45), whatever caller it states. It looks at the effects in the
// lineage, also of motions that the block carries, and reads the entries without the code that executes and that of the
// model.
func (x *watch) rightful(n *Node, state *scope.State, b *scope.Block, log []lineage.Entry) {
	if len(x.w.Scenario.Network.Authors) == 0 || x.w.number > 0 {
		return
	}
	e := x.w.epochs[b.Header.Epoch]
	for i := range log {
		entry := &log[i]
		if entry.Height != b.Header.Height || entry.Author.IsZero() {
			continue
		}
		verb, looks := "", false
		m := changeOf(b, state, entry.Mutation)
		if m != nil {
			verb, looks = verbIn(entry, m)
		}
		if looks {
			x.w.holds(Access, n, mayIn(e, m, verb, entry.Key), "at height %d %s for %q has %s of %q, and no right to %s", entry.Height, entry.Author.Short(), entry.Caller, entry.Class, entry.Key, verb)
		}
	}
}

// changeOf is a mutation that a block made effective: one of its own, or of a motion; nil if that is forgotten.
func changeOf(b *scope.Block, state *scope.State, id aweigh.Hash) *scope.Mutation {
	for _, c := range b.Bundles {
		for i := range c.Mutations() {
			if m := &c.Mutations()[i]; m.ID == id {
				return &m.Mutation
			}
		}
	}
	mo, _, err := state.Motion(id)
	if must.OK(err, "reading a motion"); mo == nil {
		return nil
	}
	m, err := scope.OpenMutation(mo.Mutation)
	must.OK(err, "reading what a motion changes")
	return &m.Mutation
}

// verbIn is the verb that the author of an effect needs; looks is false if authors need none.
func verbIn(entry *lineage.Entry, m *scope.Mutation) (verb string, looks bool) {
	switch entry.Class {
	case lineage.Compact:
		return "compact", true
	case lineage.Access:
		return "users", true
	case lineage.Insert, lineage.Update, lineage.AliasBind, lineage.AliasMove, lineage.AliasFollow, lineage.Delete, lineage.AliasUnbind, lineage.Claim:
	default:
		return "", false
	}
	switch m.Class {
	case scope.Act:
		var a scope.Action
		must.OK(canon.Decode(m.Content, &a), "reading an action")
		return a.Verb, true
	case scope.Name:
		var to scope.Naming
		if must.OK(canon.Decode(m.Content, &to), "reading a change of names"); to.Kind != scope.Rollback {
			return "alias", true
		}
	case scope.Lease:
		return "delete", true
	case scope.Write:
		if entry.Class.Clears() {
			return "delete", true
		}
	}
	return "put", true
}

// mayIn reports whether the key whose rights a mutation uses may do something with a key, or with no key, in an epoch.
func mayIn(e *scope.Epoch, m *scope.Mutation, verb string, key []byte) bool {
	by, within := m.Author, true
	may := func(verbs []string, prefixes [][]byte) bool {
		covers := func(prefix []byte) bool { return strings.HasPrefix(string(key), string(prefix)) }
		return (len(verbs) == 0 || slices.Contains(verbs, verb)) && (len(prefixes) == 0 || len(key) > 0 && slices.ContainsFunc(prefixes, covers))
	}
	for i, raw := range m.Grants {
		var g scope.Grant
		must.OK(canon.Decode(raw, &g), "reading a grant")
		if within = within && may(g.Verbs, g.Prefixes); i == 0 {
			by = g.By.ID()
		}
	}
	anchor := slices.ContainsFunc(e.Roster.Anchors, func(a scope.Anchor) bool {
		node, ok := scope.PeerKey(a.Peer)
		return a.Key.ID() == by || ok && node.ID() == by
	})
	return within && slices.ContainsFunc(e.Policy.Authors, func(a scope.Author) bool {
		about := a.Who == scope.Anyone || a.Who == scope.Anchors && anchor || a.Who == scope.OneKey && a.Key.ID() == by
		return about && may(a.Verbs, a.Prefixes)
	})
}
