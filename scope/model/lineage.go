package model

import (
	"fmt"
	"reflect"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/lineage"
	"github.com/aweigh/aweigh/scope"
)

// compacted is the entry of a compaction.
var compacted = lineage.Entry{Class: lineage.Compact}

// reckoned are the classes of entries that the model makes itself.
var reckoned = map[lineage.Class]bool{
	lineage.Insert: true, lineage.Update: true, lineage.Delete: true, lineage.AliasBind: true, lineage.AliasMove: true,
	lineage.AliasUnbind: true, lineage.AliasFollow: true, lineage.HandedOver: true, lineage.Compact: true, lineage.Failed: true,
	lineage.Claim: true, lineage.Access: true, lineage.Opened: true, lineage.Voted: true, lineage.Reconcile: true, lineage.Closed: true,
	lineage.Rejoined: true, lineage.SetAside: true, lineage.CameHome: true, lineage.Folded: true,
	lineage.Sent: true, lineage.Received: true, lineage.Declined: true, lineage.Left: true, lineage.Kept: true,
}

// reckons reports whether the model makes an entry itself. That a decision which was carried does not take effect is
// taken from a node.
func (m *Model) reckons(e *lineage.Entry) bool {
	return reckoned[e.Class] && (e.Class != lineage.Failed || !m.dismisses(e))
}

// dismisses reports whether an entry of a failure is not that of a mutation which the block executes.
func (m *Model) dismisses(e *lineage.Entry) bool {
	for _, c := range m.block.Bundles {
		for i := range c.Mutations() {
			if mut := &c.Mutations()[i]; mut.ID == e.Mutation {
				r, ok := m.block.told.Outcome(c.ID(), mut.ID)
				return ok && r.Code != scope.Failed
			}
		}
	}
	return true
}

// entry enters what the mutation did, c if it changed a key, and compares with the next entry of the node's lineage
// that is of a class which the model makes. It returns its index.
func (m *Model) entry(e lineage.Entry, c *event) (index int64) {
	x := m.block
	h, mut, log := &x.Header, x.mutation, x.told.Log
	for x.entered < len(log) && !m.reckons(&log[x.entered]) {
		x.entered++
	}
	e.Scope, e.Height, e.Index, e.Policy, e.Roster = h.Scope, h.Height, uint32(x.entered), h.Policy, h.Roster
	if x.isle != nil && e.Reason == "" {
		e.Reason = x.isle.told
	}
	e.Mutation, e.Author, e.Justification, e.Caller, e.Revision = mut.ID, mut.Author, mut.Justification, mut.Caller, m.revision()
	if e.Principal = nil; len(mut.Grants) > 0 {
		p := principal(mut)
		e.Principal = p[:]
	}
	at := x.told.First + int64(x.entered)
	if c != nil {
		e.Key, e.Object = c.kv.Key, c.kv.UID
		if c.kv.Entry = at; !c.deleted {
			e.Posterior = c.kv.Digest()
		}
	}
	if u := e.Object; u != (aweigh.UID{}) {
		e.Prev = m.chains[u]
		m.chains[u], m.walks[u] = at+1, m.walks[u]+1
	}
	if x.entered >= len(log) {
		x.differ = append(x.differ, fmt.Sprintf("the lineage lacks %s of %q at revision %d", e.Class, e.Key, e.Revision))
	} else if is := log[x.entered]; !sameEntry(is, e) {
		x.differ = append(x.differ, fmt.Sprintf("entry %d is %s, and must be %s", x.told.First+int64(x.entered), say(&is), say(&e)))
	}
	x.entered++
	return at
}

// say is an entry in one line.
func say(e *lineage.Entry) string {
	return fmt.Sprintf("%s of %q, object %.8s, at revision %d by mutation %s of %s for %x (%q), after entry %d, from %s to %s: %q",
		e.Class, e.Key, e.Object.String(), e.Revision, e.Mutation.Short(), e.Author.Short(), e.Principal, e.Caller, e.Prev-1, e.Prior.Short(), e.Posterior.Short(), e.Reason)
}

func sameEntry(a, b lineage.Entry) bool {
	if len(a.Key) == 0 && len(b.Key) == 0 {
		a.Key, b.Key = nil, nil
	}
	if len(a.Principal) == 0 && len(b.Principal) == 0 {
		a.Principal, b.Principal = nil, nil
	}
	return reflect.DeepEqual(a, b)
}

// entries looks for entries that nothing in the block leads to.
func (m *Model) entries() {
	x := m.block
	for ; x.entered < len(x.told.Log); x.entered++ {
		if e := &x.told.Log[x.entered]; m.reckons(e) {
			x.differ = append(x.differ, fmt.Sprintf("entry %d, %s of %q, has no cause in block %d", x.told.First+int64(x.entered), e.Class, e.Key, x.Header.Height))
		}
	}
}
