package sim

import (
	"bytes"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/node/referral"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
)

// overBudget reports whether more lie than may, in a scope or in one above it.
func (w *World) overBudget() bool {
	for c := w; ; c = c.find(c.Genesis.Descent.Parent) {
		if c.watch.lost {
			return true
		}
		if c.Genesis.Descent == nil {
			return false
		}
	}
}

// referral holds what refers a visitor to another scope to one that was founded there.
func (w *World) referral(v *visitor, f *referral.Scope, d scope.Delegation) {
	if from := w.find(f.ID()); from == nil || from.overBudget() {
		return
	}
	w.watch.reach("referral")
	c := w.find(d.Child)
	ok := c != nil && c.Genesis.Descent.Parent == f.ID() && bytes.Equal(c.Genesis.Prefix(), d.Prefix)
	w.holds(Referred, nil, ok, "visitor %d is referred from %q to a scope for %q that was never founded", v.id, f.Genesis().Prefix(), d.Prefix)
}

// proven holds an epoch that is proven to a visitor to the one in which the scope was.
func (w *World) proven(v *visitor, f *referral.Scope, e *scope.Epoch) {
	c := w.find(f.ID())
	if c == nil || c.overBudget() {
		return
	}
	w.watch.reach("epoch proven to a visitor")
	if int(e.Number) >= len(c.epochs) { // no node is known to be there yet
		if c.shown == nil {
			c.shown = make(map[aweigh.Epoch]votes.Domain)
		}
		c.shown[e.Number] = e.Domain()
		return
	}
	c.holds(Referred, nil, c.epochs[e.Number].Domain() == e.Domain(), "visitor %d takes other anchors for those of epoch %d in %q", v.id, e.Number, f.Genesis().Prefix())
}

// visited notes that a visitor was answered.
func (w *World) visited(v *visitor, f *referral.Scope, a *referral.Answer, what string) {
	w.watch.reach("visit")
	if d := f.Genesis().Descent; d != nil && d.Depth > 1 {
		w.watch.reach("visit over two referrals")
	}
	v.heard[f.ID()] = max(v.heard[f.ID()], a.Revision)
	w.log(w.Nodes[v.beside], "visit", "visitor %d: %s in %q as of revision %d", v.id, what, f.Genesis().Prefix(), a.Revision)
}

// aged checks an answer that a visitor gives again: it is not kept for longer than the scope's
// policy allows, and not older than what the visitor knows.
func (w *World) aged(v *visitor, f *referral.Scope, a *referral.Answer, what string, cached bool) {
	id := f.ID()
	about := string(id[:]) + what
	if !cached {
		v.told[about] = w.Now()
		return
	}
	w.watch.reach("answer from a cache")
	c, ttl := w.find(id), f.Epoch().Policy.Limits.TTL
	age := w.Now() - v.told[about]
	c.holds(Referred, nil, age < ttl, "visitor %d gives an answer of %q about %s again after %v, more than %v", v.id, f.Genesis().Prefix(), what, age, ttl)
	c.holds(Referred, nil, a.Revision >= v.heard[id], "visitor %d gives an answer of %q about %s again as of revision %d, and knows of %d", v.id, f.Genesis().Prefix(), what, a.Revision, v.heard[id])
}

// truth compares a visitor's answer about a key with a scope's state at the revision of the
// answer, or at a later one. A key that the answer calls absent never existed until then.
func (w *World) truth(v *visitor, f *referral.Scope, key string, kv scope.KeyValue, revision int64) {
	c := w.find(f.ID())
	if c == nil || c.overBudget() {
		return
	}
	at := max(revision, kv.ModRevision)
	c.holds(Referred, nil, at <= c.answered, "visitor %d was told version %d of %s, %q, as of revision %d; no honest node has answered as of later than %d", v.id, kv.Version, key, kv.Value, at, c.answered)
	for _, n := range c.Nodes {
		if !n.honest() || n.machine == nil || n.disk.failing() || n.gave(key) {
			continue
		}
		s := n.state()
		if h := s.Head(); h.ClosedTimestamp() < at {
			continue
		}
		r, err := s.Range([]byte(key), nil, scope.Range{Revision: at})
		if err != nil { // compacted since
			continue
		}
		var is scope.KeyValue
		if len(r.Kvs) == 1 {
			is = r.Kvs[0]
		}
		c.holds(Referred, nil, bytes.Equal(canon.Encode(is), canon.Encode(kv)), "visitor %d was told version %d of %s, %q, as of revision %d; %s says version %d, %q",
			v.id, kv.Version, key, kv.Value, revision, n, is.Version, is.Value)
		return
	}
}
