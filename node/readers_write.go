package node

import (
	"errors"
	"slices"

	"github.com/aweigh/aweigh/internal/refusal"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/node/referral"
	"github.com/aweigh/aweigh/scope"
)

// An author that may not read (P48) would learn what keys hold by what it writes: by compares and ranges of its
// transactions, by the content before a change, by a rule that it has tried, or by a new name for what another key
// holds. So a node takes no bundle from a peer that asks for more than the peer may read, neither by a question, whose
// answer would show it, nor by frames and gossip, since what the bundle then writes would show it.

// hides returns scope.ErrNoReader if what becomes of a bundle would show a peer what it may not read.
func (n *Replica) hides(p machine.Peer, b *scope.CheckedBundle) error {
	all := b.Mutations()
	if n.member(p) || !slices.ContainsFunc(all, func(m scope.CheckedMutation) bool { return shows(&m) }) {
		return nil
	}
	if may, err := n.mayReadNow(p); may || err != nil {
		return err
	}
	for i := range all {
		m := &all[i]
		from, to := m.Copies()
		if len(from) > 0 {
			var err error
			// A new name may be where the peer does not see it. A rollback shows the version under all names.
			seen := m.Naming.Kind == scope.Rollback
			if !seen {
				err = n.refusesPartial(p, referral.Keys(to))
				seen = err == nil
			}
			if seen {
				err = n.refusesPartial(p, referral.Keys(from))
			} else if errors.Is(err, scope.ErrNoReader) {
				err = nil
			}
			if err != nil {
				return err
			}
		}
		if !reads(m) {
			continue
		}
		if err := n.refusesPartial(p, func(visit func(key, end []byte) bool) bool { return m.Reads(visit) }); err != nil {
			return err
		}
	}
	return nil
}

// shows reports whether the outcome of a mutation can show what keys hold.
func shows(m *scope.CheckedMutation) bool {
	from, _ := m.Copies()
	return len(from) > 0 || reads(m)
}

// reads reports whether a mutation compares keys, reads them, or asks for their content before.
func reads(m *scope.CheckedMutation) (some bool) {
	m.Reads(func(_, _ []byte) bool { some = true; return false })
	return some
}

// hidesFrame is hides for a bundle that came by a frame or by gossip: it reports whether the bundle must not be taken.
func (n *Replica) hidesFrame(p machine.Peer, b *scope.CheckedBundle) bool {
	err := n.hides(p, b)
	if err != nil {
		n.measured.unread.Add(1)
		n.note(machine.Dropped{From: p, Class: refusal.Denied, Why: "mutations that read what their sender may not: " + err.Error()})
	}
	return err != nil
}

// hidesNames returns scope.ErrNoReader if an answer names keys that a peer may not read. An answer can name others than
// the question, such as further aliases of an object.
func (n *Replica) hidesNames(p machine.Peer, names referral.Ranges) error {
	some := false
	names(func(_, _ []byte) bool { some = true; return false })
	if !some {
		return nil
	}
	return n.refuses(p, names)
}

// hidesProof returns scope.ErrNoReader if a proof shows a peer keys that it may not read: it holds a whole mutation.
func (n *Replica) hidesProof(p machine.Peer, proof *scope.KeyProof) error {
	may, err := n.mayReadNow(p)
	if may || err != nil {
		return err
	}
	if err := n.hidesNames(p, entryNames(&proof.Change.Entry)); err != nil || len(proof.Origin.Mutation) == 0 {
		return err
	}
	m, err := scope.OpenMutation(proof.Origin.Mutation)
	if err != nil {
		return err
	}
	var all referral.RangeList
	if known := m.Names(func(key, end []byte) bool {
		all.Ranges = append(all.Ranges, referral.KeyRange{Key: key, End: end})
		return true
	}); !known {
		return scope.ErrNoReader
	}
	return n.hidesNames(p, all.Each)
}

// hidesVerdict returns scope.ErrNoReader if a peer may not know what the rules say of a verb on a key. A rule that the
// peer brings tells what the key holds. The policy's rules tell an author that may do it no more than doing it would.
func (n *Replica) hidesVerdict(p machine.Peer, q *foreignQuery) error {
	if q.Try == nil {
		verbs := []string{q.Verb}
		if q.Verb == "write" { // the rule about all of them
			verbs = []string{scope.VerbPut, scope.VerbDelete, scope.VerbAlias}
		}
		rights := n.epochs.epoch().Rights(keyOf(p))
		if slices.ContainsFunc(verbs, func(verb string) bool { return rights.Entry(verb, q.Key) != nil }) {
			return nil
		}
	}
	return n.refuses(p, referral.Keys(q.Key))
}
