package sim

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/internal/must"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/lineage"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/store"
	"github.com/aweigh/aweigh/votes"
)

// inventedIsle is an island that liars made up: no machine of it runs, and they certify what they like.
type inventedIsle struct {
	by      *plan
	w       *World // of the scope
	id      aweigh.ScopeID
	genesis scope.Genesis
	terms   scope.Terms // of the scope's epoch
	epoch   *scope.Epoch
	bundles map[aweigh.Hash]*scope.CheckedBundle // by mutation: what authors signed for this island
	entries []scope.Provisional                  // after those of the founding
	at      aweigh.Height                        // of the last block
	made    *kv.Overlay                          // the lineage
	size    int64
	objects map[string]*scope.KeyValue // by key, nil once deleted
}

func (l *liar) inventIsle(g scope.Genesis, terms scope.Terms) *inventedIsle {
	e, err := g.Epoch()
	must.OK(err, "reading the genesis of an island")
	c := &inventedIsle{
		by: l.plan, w: l.w, id: g.Hash(), genesis: g, terms: terms, epoch: e,
		bundles: make(map[aweigh.Hash]*scope.CheckedBundle), objects: make(map[string]*scope.KeyValue),
	}
	c.log()
	return c
}

// log makes the lineage of the entries.
func (c *inventedIsle) log() {
	c.made, c.size = kv.NewOverlay(store.NewMem()), 0
	keys := c.genesis.Descent.Keys
	for i := range keys {
		c.append(lineage.Entry{Scope: c.id, Class: lineage.TakenOver, Key: fmt.Appendf(nil, "%d", i)})
	}
	for i := range c.entries {
		c.append(c.entries[i].Entry)
	}
	for i := range c.entries {
		var err error
		c.entries[i].Place, err = c.lineage().Prove(keys+int64(i), c.size)
		must.OK(err, "proving an entry")
	}
}

func (c *inventedIsle) lineage() *lineage.Log { return lineage.Open(c.made, []byte("l"), c.size) }

func (c *inventedIsle) append(e lineage.Entry) {
	ops, err := c.lineage().Append(e)
	must.OK(err, "appending to a lineage")
	c.made.Apply(ops...)
	c.size++
}

// fork is a copy, whose entries can be changed.
func (c *inventedIsle) fork() *inventedIsle {
	f := *c
	f.entries = slices.Clone(c.entries)
	return &f
}

// sign has a member sign a transaction for the island, and executes it as the members like: now and then they execute
// an earlier one again, or give two objects one identity.
func (c *inventedIsle) sign(l *liar) {
	c.at++
	if n := len(c.entries); n > 0 && l.rand.IntN(4) == 0 {
		of := c.entries[l.rand.IntN(n)].Entry.Mutation
		c.execute(c.bundles[of], false)
		l.told("invent", "mutation %s twice", of.Short())
	} else {
		var t scope.Txn
		first := l.rand.IntN(isleKeys)
		for i := range 1 + l.rand.IntN(3) {
			op := scope.Op{Kind: scope.OpPut, Key: c.w.isleKey(c.genesis.Prefix(), first+i), Value: fmt.Appendf(nil, "made up %d", l.rand.Uint32())}
			if l.rand.IntN(4) == 0 {
				op = scope.Op{Kind: scope.OpDelete, Key: op.Key}
			}
			t.Success = append(t.Success, op)
		}
		m := c.w.mutation(t, fmt.Appendf(nil, "made up %d", l.rand.Uint64()))
		m.Scope = c.id
		b, err := scope.Sign(l.n.author, c.genesis.Policy.Limits, m)
		must.OK(err, "signing for an island")
		c.bundles[b.Mutations()[0].ID] = b
		same := l.rand.IntN(4) == 0
		if same {
			l.told("invent", "two objects of one identity")
		}
		c.execute(b, same)
	}
	c.log()
}

// execute adds the entries of a mutation.
func (c *inventedIsle) execute(b *scope.CheckedBundle, same bool) {
	m := &b.Mutations()[0]
	rev := c.genesis.Descent.Revision + int64(c.at)
	for i, op := range m.Txn.Success {
		e := lineage.Entry{Scope: c.id, Height: c.at, Index: uint32(i), Mutation: m.ID, Author: m.Author, Key: op.Key, Revision: rev}
		old := c.objects[string(op.Key)]
		v := scope.KeyValue{Key: op.Key, Value: op.Value, CreateRevision: rev, ModRevision: rev, Sub: uint32(i), Version: 1}
		switch {
		case op.Kind == scope.OpDelete && old == nil:
			continue
		case op.Kind == scope.OpDelete:
			e.Class, e.Object = lineage.Delete, old.UID
			c.objects[string(op.Key)] = nil
			c.entries = append(c.entries, scope.Provisional{Entry: e})
			continue
		case old == nil:
			if same {
				v.Sub = 0
			}
			e.Class, v.UID = lineage.Insert, aweigh.NewUID(m.ID, v.Sub)
		default:
			e.Class, v.UID, v.CreateRevision, v.Version = lineage.Update, old.UID, old.CreateRevision, old.Version+1
		}
		e.Object, e.Posterior = v.UID, v.Digest()
		c.objects[string(op.Key)] = &v
		c.entries = append(c.entries, scope.Provisional{Entry: e, Value: v})
	}
}

// certify makes the certificate of a block: the members' signatures on what is bound to a domain.
func (c *inventedIsle) certify(d votes.Domain, h scope.Header) quorum.Certificate {
	cert := quorum.Certificate{Subject: quorum.Subject{Kind: quorum.Finalize, View: h.View, Block: h.Hash()}}
	for _, m := range c.by.members {
		if m.Face != 0 || m.key == nil || c.epoch.Roster.Weights.Of(m.anchorID()) == 0 {
			continue
		}
		b := votes.Ballot{Format: scope.Format, Domain: d, Subject: cert.Subject, Anchor: m.anchorID()}
		cert.Signatures = append(cert.Signatures, quorum.Signature{Anchor: b.Anchor, Bytes: m.key.Sign(votes.ContextBallot, b.SigningBytes())})
	}
	slices.SortFunc(cert.Signatures, func(a, b quorum.Signature) int { return bytes.Compare(a.Anchor[:], b.Anchor[:]) })
	return cert
}

// rejoining is what comes next of the island: an announcement, or the changes of some mutations; ok is false if nothing
// does.
func (c *inventedIsle) rejoining(rec *scope.IslandRecord) (re scope.Rejoining, ok bool) {
	head, err := c.lineage().Head()
	must.OK(err, "reading a lineage")
	d := c.epoch.Domain()
	h := scope.Header{
		Format: scope.Format, Network: d.Network, Scope: d.Scope, Epoch: d.Epoch, Roster: d.Roster, Policy: d.Policy,
		View: aweigh.View(c.at + 1), Height: c.at + 1, Time: c.w.watch.time.from(c.w.now), LineageSize: head.Size, LineageRoot: head.Root,
	}
	re = scope.Rejoining{Genesis: c.genesis.Encode(), Terms: c.terms, Final: scope.Finality{Header: h, Certificate: c.certify(d, h)}}
	if rec == nil {
		return re, true
	}
	from := rec.Next - c.genesis.Descent.Keys
	if from >= int64(len(c.entries)) {
		return re, false
	}
	have := make(map[aweigh.Hash]bool)
	for i, p := range c.entries[from:] {
		if begins := i == 0 || c.entries[from+int64(i)-1].Entry.Height != p.Entry.Height; begins && len(have) == 3 {
			re.After = []scope.Provisional{{Entry: p.Entry, Place: p.Place}}
			break
		}
		if b := c.bundles[p.Entry.Mutation]; !have[p.Entry.Mutation] {
			have[p.Entry.Mutation] = true
			re.Bundles = append(re.Bundles, b.Raw())
		}
		re.Changes = append(re.Changes, p)
	}
	return re, true
}

// bringing is a mutation of the scope that brings something of an island back.
func (w *World) bringing(re scope.Rejoining) scope.Mutation {
	m := w.mutation(scope.Txn{}, w.isleNonce())
	m.Class, m.Content = scope.Rejoin, canon.Encode(re)
	return m
}

// histories is how many there are of an island: liars may make up several of one, which may also be a real one.
func (w *World) histories(id aweigh.ScopeID) (n int) {
	if w.find(id) != nil {
		n++
	}
	for _, c := range w.isles.invented {
		if c.id == id {
			n++
		}
	}
	return n
}

// auditInvented holds that of islands which liars made up the scope took what an author signed for them, and that
// once.
func (w *World) auditInvented(best *Node) {
	if len(w.isles.invented) == 0 {
		return
	}
	signed := make(map[aweigh.ScopeID]map[aweigh.Hash]*scope.CheckedBundle)
	for _, c := range w.isles.invented {
		if signed[c.id] == nil {
			signed[c.id] = make(map[aweigh.Hash]*scope.CheckedBundle)
		}
		maps.Copy(signed[c.id], c.bundles)
	}
	type change struct {
		island        aweigh.ScopeID
		mutation, key string
	}
	once := make(map[change]bool)
	log := best.state().Lineage()
	for i := range log.Size() {
		e, _, err := log.Entry(i)
		must.OK(err, "reading an entry")
		id, of, author, ok := scope.ParseIsland(e.Reason)
		if !ok || signed[id] == nil || e.Class != lineage.SetAside && e.Class != lineage.Insert && e.Class != lineage.Update && e.Class != lineage.Delete {
			continue
		}
		b := signed[id][of]
		w.holds(Islands, best, w.find(id) != nil || b != nil && b.Mutations()[0].Author == author, "entry %d is of a mutation that no author signed for the island: %s", i, e.Reason)
		at := change{id, of.String(), string(e.Key)}
		w.holds(Islands, best, !once[at], "a change of %s by mutation %s of an island of liars came twice", e.Key, of.Short())
		once[at] = true
		if e.Class != lineage.SetAside {
			w.watch.reach("false island taken")
		}
	}
}
