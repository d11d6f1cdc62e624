package sim

import (
	"errors"
	"slices"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/must"
	"github.com/aweigh/aweigh/lineage"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
)

// invent makes up islands of its members, and of as many others that never hear of it as the partition's share takes.
// Where the members weigh more than two thirds of that, they certify any lineage (P53). They bring back what their
// authors signed, in an order and on a base of their choice (P54), and what breaks the rules.
type invent struct {
	plain
	made []*inventedIsle
}

// mostInvented is how many islands one coalition makes up.
const mostInvented = 3

func (x *invent) tick(l *liar) {
	w := l.w
	if w.number > 0 || len(w.Genesis.Policy.Partitions) == 0 || !w.firing || l.n.Face != 0 || !l.n.sees() || !l.may() {
		return
	}
	if len(x.made) < mostInvented && (len(x.made) == 0 || l.rand.IntN(20) == 0) {
		x.found(l)
		return
	}
	if len(x.made) == 0 {
		return
	}
	c := x.made[l.rand.IntN(len(x.made))]
	if l.rand.IntN(3) == 0 {
		c.sign(l)
	}
	rec := islandOn(l.n, c.id)
	whole, ok := c.rejoining(rec)
	if !ok {
		return
	}
	if l.rand.IntN(2) == 0 {
		x.falsify(l, c, rec)
		return
	}
	b, err := scope.SignReserving(200_000, l.n.author, w.Genesis.Policy.Limits, w.bringing(whole))
	if errors.Is(err, scope.ErrInvalid) && w.histories(c.id) > 1 { // what comes next of another one begins elsewhere
		return
	}
	must.OK(err, "signing what comes next of an island")
	l.told("invent", "brings back island %s, %d entries", c.id.Short(), len(whole.Changes))
	l.n.propose(machine.Submit{Bundle: b}, func(r machine.Reply) {
		if r.Outcome != nil {
			w.log(l.n, "rejoin", "an island of liars: %s %s", r.Outcome.Code, r.Outcome.Reason)
		}
	})
}

// found makes up an island, if the members have a quorum of the lightest one that they can be in.
func (x *invent) found(l *liar) {
	w, e := l.w, l.n.machine.Epoch()
	parts := w.Genesis.Policy.Partitions
	p := &parts[l.rand.IntN(len(parts))]
	weights := &e.Roster.Weights
	var lying, others []quorum.Share
	for s := range weights.All() {
		if l.friend(w.Nodes[w.anchors[s.Anchor]]) {
			lying = append(lying, s)
		} else {
			others = append(others, s)
		}
	}
	slices.SortStableFunc(others, func(a, b quorum.Share) int { return int(a.Weight) - int(b.Weight) })
	var ids []aweigh.AnchorID
	var all, liars uint64
	for _, s := range lying {
		ids, all, liars = append(ids, s.Anchor), all+s.Weight, liars+s.Weight
	}
	reached := func() bool { return all*uint64(p.Den) >= weights.Total()*uint64(p.Num) }
	light := !reached()
	for _, s := range others {
		if !reached() {
			ids, all = append(ids, s.Anchor), all+s.Weight
		}
	}
	g, _, err := l.n.state().Island(p.Prefix, ids)
	if errors.Is(err, scope.ErrIsland) {
		return
	}
	must.OK(err, "making up an island")
	if !g.Policy.Rules.Finalize.Met(liars, all, len(lying)) {
		return
	}
	terms, _, err := machine.History{Reader: l.n.Disk, Scope: w.id}.TermsAt(w.Genesis, g.Descent.Height+1)
	must.OK(err, "reading the terms of an epoch")
	if light && l.rand.IntN(2) == 0 { // of its members alone
		g.Anchors = slices.DeleteFunc(slices.Clone(g.Anchors), func(a scope.Anchor) bool { return !l.friend(w.Nodes[w.anchors[a.Key.ID()]]) })
		c := l.inventIsle(g, terms)
		whole, _ := c.rejoining(nil)
		x.refused(l, "an island below its share", whole)
		return
	}
	d := *g.Descent
	switch g.Descent = &d; l.rand.IntN(3) {
	case 0: // so that what the scope changed meanwhile looks older
		d.Revision = 1 + l.rand.Int64N(d.Revision)
	case 1:
		d.Keys, d.Block = 0, aweigh.Sum([]byte("no block"))
	}
	l.told("invent", "an island of %d anchors, of which %d lie, on revision %d", len(g.Anchors), len(lying), d.Revision)
	x.made = append(x.made, l.inventIsle(g, terms))
	w.isles.invented = append(w.isles.invented, x.made[len(x.made)-1])
}

// falsify makes a lineage that no node may take: the members certify it, and it breaks a rule.
func (x *invent) falsify(l *liar, c *inventedIsle, rec *scope.IslandRecord) {
	if rec == nil || len(c.entries) == 0 {
		return
	}
	kind := l.rand.IntN(6)
	if kind == 4 { // of another island
		whole, _ := c.rejoining(rec)
		d := c.epoch.Domain()
		d.Scope[0]++
		whole.Final.Certificate = c.certify(d, whole.Final.Header)
		x.refused(l, "signatures of another island", whole)
		return
	}
	f := c.fork()
	at := slices.IndexFunc(f.entries, func(p scope.Provisional) bool {
		return p.Place.Index >= rec.Next && (p.Entry.Class == lineage.Insert || p.Entry.Class == lineage.Update && kind != 2)
	})
	if at < 0 {
		return
	}
	what, p := "", &f.entries[at]
	switch kind {
	case 0:
		what, p.Value.Value = "an invented value", []byte("made up by none")
	case 1:
		what, p.Entry.Key = "an invented key", append(slices.Clone(p.Entry.Key), "bent"...)
		p.Value.Key = p.Entry.Key
	case 2:
		what, p.Value.UID = "another object's identity", aweigh.NewUID(c.id, 1)
		p.Entry.Object = p.Value.UID
	case 3:
		what, p.Entry.Author = "another author", aweigh.Sum([]byte("nobody"))
	case 5: // the entry shows other content than the lineage names
		what, p.Entry.Posterior = "another digest", aweigh.Sum([]byte("nothing"))
	}
	if kind != 5 {
		p.Entry.Posterior = p.Value.Digest()
	}
	f.log()
	whole, _ := f.rejoining(rec)
	if n := len(whole.Changes); n > 0 && p.Place.Index <= whole.Changes[n-1].Place.Index { // or it comes later
		x.refused(l, what, whole)
	}
}

// refused checks that no node takes a Rejoining.
func (*invent) refused(l *liar, what string, re scope.Rejoining) {
	w := l.w
	l.told("invent", "%s", what)
	_, err := scope.Sign(l.n.author, w.Genesis.Policy.Limits, w.bringing(re))
	w.holds(Islands, l.n, errors.Is(err, scope.ErrInvalid), "a Rejoining that liars certified, with %s, is taken: %v", what, err)
	w.watch.reach("false lineage refused")
}
