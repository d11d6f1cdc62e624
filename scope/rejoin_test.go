package scope

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/lineage"
	"github.com/aweigh/aweigh/votes"
)

// shipPartition is the partition of the tests: two of four anchors found an island on /ship/.
func shipPartition() Partition {
	return Partition{Prefix: []byte("/ship/"), Num: 2, Den: 5, After: time.Minute, Gather: 10 * time.Second, Window: time.Hour}
}

func newShip(t fataler) *realm {
	t.Helper()
	return newRealm(t, func(p *Policy) { p.EpochBlocks, p.Partitions = 500, []Partition{shipPartition()} })
}

// isle is an island of a realm's scope: a realm of its own in the same store.
type isle struct {
	*realm
	blocks map[aweigh.Height]*Block
	terms  Terms
}

func (r *realm) isle(members ...string) *isle {
	r.t.Helper()
	var ids []aweigh.AnchorID
	for _, name := range members {
		ids = append(ids, r.id(name))
	}
	g, ops, err := r.state.Island([]byte("/ship/"), ids)
	if err != nil {
		r.t.Fatalf("an island of %v: %v", members, err)
	}
	r.flat.Apply(ops...)
	c := &isle{realm: &realm{world: r.world.child(g), keys: r.keys, names: r.names, away: r.away}, blocks: make(map[aweigh.Height]*Block), terms: r.epoch().Terms()}
	c.now = r.now
	return c
}

// do makes a block of the island with mutations, of which each is a bundle.
func (c *isle) do(muts ...Mutation) *Result {
	c.t.Helper()
	var bundles []*CheckedBundle
	for _, m := range muts {
		bundles = append(bundles, c.reserving(0, m))
	}
	b := c.next(nil, nil, bundles...)
	c.blocks[b.Header.Height] = b
	return c.add(b)
}

// source is what its members have, after one more block, whose header names the lineage.
func (c *isle) source() *IslandSource {
	c.t.Helper()
	c.do()
	return &IslandSource{
		State: c.state, Genesis: c.g, Terms: c.terms, Handovers: c.hands, Final: final(c.realm, c.past[len(c.past)-1]),
		Block: func(h aweigh.Height) (*Block, error) { return c.blocks[h], nil },
	}
}

// rejoin is the outcome of a Rejoining, by the node of an anchor.
func (r *realm) rejoin(by string, re Rejoining) Outcome {
	r.t.Helper()
	c, err := Sign(r.names[by], r.g.Policy.Limits, r.mutation(Rejoin, re))
	if err != nil {
		r.t.Fatalf("sign: %v", err)
	}
	return r.add(r.next(nil, nil, c)).Outcomes[0]
}

// takes brings all that an island decided into the scope, in parts of so many bytes.
func (r *realm) takes(c *isle, most int) {
	r.t.Helper()
	src := c.source()
	if out := r.rejoin("a", src.Announcement()); out.Code != Applied {
		r.t.Fatalf("announcing the island: %s %s", out.Code, out.Reason)
	}
	r.now = r.now.Add(10 * time.Second)
	for from := c.g.Descent.Keys; from < src.Final.Header.LineageSize; {
		re, err := src.Next(from, most)
		if err != nil || len(re.Changes) == 0 {
			r.t.Fatalf("the changes from %d on: %d, %v", from, len(re.Changes), err)
		}
		if out := r.rejoin("b", re); out.Code != Applied {
			r.t.Fatalf("taking the changes from %d on: %s %s", from, out.Code, out.Reason)
		}
		from = r.nextOf(c)
	}
}

// nextOf is the index of the next entry of an island that the scope takes.
func (r *realm) nextOf(c *isle) int64 {
	r.t.Helper()
	all, err := r.state.Islands()
	if err != nil {
		r.t.Fatalf("%v", err)
	}
	for i := range all {
		if all[i].ID == c.g.Hash() {
			return all[i].Next
		}
	}
	r.t.Fatalf("the island is not on record")
	return 0
}

// reads is the value of a key, "-" if it is not there.
func (w *world) reads(key string) string {
	w.t.Helper()
	v, ok, err := w.state.newest([]byte(key))
	if err != nil {
		w.t.Fatalf("reading %s: %v", key, err)
	}
	if !ok {
		return "-"
	}
	return string(v.Value)
}

// TestP54IslandsRejoin: what an island decided comes into the scope once, with the identities that it gave; where the
// scope changed what the island had found, the change is set aside, and so are those that build on it.
func TestP54IslandsRejoin(t *testing.T) {
	for name, most := range map[string]int{"at once": 1 << 20, "one by one": 1} { // order-free: each is checked alone
		t.Run(name, func(t *testing.T) {
			r := newShip(t)
			r.one(r.ops(put("/ship/log", "1"), put("/ship/gone", "x"), put("/land/x", "1"), put("/ship/both", "old")))
			c := r.isle("a", "b")
			c.do(c.put("/ship/log", "2"), c.put("/ship/new", "n"), c.ops(del("/ship/gone", "")))
			c.do(c.put("/ship/log", "3"), c.put("/ship/both", "island"))
			c.do(c.ops(put("/ship/both", "again"), put("/ship/third", "t")))
			c.do(c.put("/ship/third", "after"))
			uid := c.live()["/ship/new"].UID
			r.one(r.put("/ship/both", "scope"))
			r.takes(c, most)
			for key, want := range map[string]string{ // order-free: each is checked alone
				"/ship/log": "3", "/ship/new": "n", "/ship/gone": "-", "/ship/both": "scope", "/ship/third": "-", "/land/x": "1",
			} {
				if got := r.reads(key); got != want {
					t.Errorf("%s is %q, want %q", key, got, want)
				}
			}
			if got := r.live()["/ship/new"].UID; got != uid {
				t.Errorf("the object of the island has the identity %s, want %s", got, uid)
			}
			all, err := r.state.Islands()
			if err != nil || len(all) != 1 || all[0].Stands != 4 || all[0].Aside != 3 || !all[0].done() {
				t.Fatalf("on record: %+v, %v", all, err)
			}
			aside := make(map[string]string)
			err = r.state.AsideOf(c.g.Hash(), func(key []byte, is SetAside) bool {
				aside[string(key)] = is.Reason
				return true
			})
			if err != nil || len(aside) != 2 || aside["/ship/both"] != errAfterAside.Error() || aside["/ship/third"] != errAfterAside.Error() {
				t.Errorf("set aside: %v, %v", aside, err)
			}
			if again, err := c.source().Next(c.g.Descent.Keys, 1<<20); err != nil {
				t.Fatal(err)
			} else if out := r.rejoin("a", again); out.Code != Failed || !strings.Contains(out.Reason, "comes next") {
				t.Errorf("the same changes again: %s %s", out.Code, out.Reason)
			}
		})
	}
}

// TestP54TheLineageNamesIslands: the entry of a change that an island made first names the island, its mutation and
// the author.
func TestP54TheLineageNamesIslands(t *testing.T) {
	r := newShip(t)
	r.one(r.put("/ship/log", "1"))
	c := r.isle("a", "b")
	m := c.put("/ship/log", "2")
	c.do(m)
	r.takes(c, 1<<20)
	v := r.live()["/ship/log"]
	kv, _, err := r.state.newest([]byte("/ship/log"))
	if err != nil {
		t.Fatal(err)
	}
	e, _, err := r.state.Lineage().Entry(kv.Entry)
	if err != nil || e.Class != lineage.Update || e.Object != v.UID {
		t.Fatalf("%+v, %v", e, err)
	}
	m.Author = c.author.Public().ID()
	if id, of, by, ok := ParseIsland(e.Reason); !ok || id != c.g.Hash() || of != ID(m.Encode()) || by != m.Author {
		t.Errorf("the reason is %q", e.Reason)
	}
}

// TestP54IslandsHaveAnOrder: of two islands, the heavier one's changes are taken first, whichever came on record first,
// and none before others had time to come.
func TestP54IslandsHaveAnOrder(t *testing.T) {
	g := func(p *Policy) { p.EpochBlocks, p.Partitions = 500, []Partition{shipPartition()} }
	r := newRealm(t, g)
	r.one(r.put("/ship/log", "1"))
	heavy := r.isle("b", "c", "d")
	r.one(r.put("/land/x", "1"))
	light := r.isle("a", "b") // its base is newer
	light.do(light.put("/ship/log", "light"), light.put("/ship/l", "l"))
	heavy.do(heavy.put("/ship/log", "heavy"), heavy.put("/ship/h", "h"))
	of := map[*isle]*IslandSource{light: light.source(), heavy: heavy.source()}
	part := func(c *isle) Rejoining {
		re, err := of[c].Next(c.g.Descent.Keys, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		return re
	}
	refused := func(what string, re Rejoining, want string) {
		t.Helper()
		if out := r.rejoin("a", re); out.Code != Failed || !strings.Contains(out.Reason, want) {
			t.Errorf("%s: %s %q, want %q", what, out.Code, out.Reason, want)
		}
	}
	refused("changes of an unknown island", part(light), "not on record")
	for _, c := range []*isle{light, heavy} {
		if out := r.rejoin("a", of[c].Announcement()); out.Code != Applied {
			t.Fatalf("%s %s", out.Code, out.Reason)
		}
	}
	refused("announced twice", of[light].Announcement(), reason(errIslandKnown))
	refused("before others had time", part(heavy), "other islands have until")
	r.now = r.now.Add(10 * time.Second)
	refused("before the heavier one", part(light), "come first")
	for _, c := range []*isle{heavy, light} {
		if out := r.rejoin("a", part(c)); out.Code != Applied {
			t.Fatalf("%s %s", out.Code, out.Reason)
		}
	}
	if a, b, c := r.reads("/ship/log"), r.reads("/ship/h"), r.reads("/ship/l"); a != "heavy" || b != "h" || c != "l" {
		t.Errorf("the log is %q, of the heavier island, with %q and %q", a, b, c)
	}
}

// TestP53IslandsThatCannotBe: no island of too little weight, of others than anchors, or of keys of another scope.
func TestP53IslandsThatCannotBe(t *testing.T) {
	r := newShip(t)
	r.one(r.put("/ship/log", "1"))
	for name, try := range map[string]struct { // order-free: each is checked alone
		prefix  string
		members []aweigh.AnchorID
		want    string
	}{
		"too light":     {"/ship/", []aweigh.AnchorID{r.id("a")}, "its members weigh"},
		"no partition":  {"/land/", []aweigh.AnchorID{r.id("a"), r.id("b")}, "no partition"},
		"not an anchor": {"/ship/", []aweigh.AnchorID{r.id("a"), r.id("b"), {1}}, "not all of its members"},
	} {
		if _, _, err := r.state.Island([]byte(try.prefix), try.members); !errors.Is(err, ErrIsland) || !strings.Contains(err.Error(), try.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	p := r.g.Policy
	for name, bend := range map[string]func(p *Policy){ // order-free: each is checked alone
		"a third is not more than a third": func(p *Policy) { p.Partitions[0].Num, p.Partitions[0].Den = 1, 3 },
		"an approval in it": func(p *Policy) {
			p.Approvals = []Approval{{Matter: Changes, Prefix: []byte("/ship/bridge/"), Num: 1, Den: 2, Window: time.Hour}}
		},
		"an approval around it": func(p *Policy) {
			p.Approvals = []Approval{{Matter: Deletions, Num: 1, Den: 2, Window: time.Hour}}
		},
		"the policy of an island": func(p *Policy) { p.Partitions[0].Island = true },
		"no time":                 func(p *Policy) { p.Partitions[0].After = 0 },
		"one below the other":     func(p *Policy) { p.Partitions = append(p.Partitions, p.Partitions[0]) },
	} {
		q := p
		q.Partitions = []Partition{p.Partitions[0]}
		bend(&q)
		if err := q.Check(); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestP53IslandsTakeWritesOfTheirKeysAlone: all else fails in an island.
func TestP53IslandsTakeWritesOfTheirKeysAlone(t *testing.T) {
	r := newShip(t)
	r.one(r.put("/ship/log", "1"))
	c := r.isle("a", "b")
	for name, m := range map[string]Mutation{ // order-free: each is checked alone
		"a key outside": c.put("/land/x", "1"),
		"a range":       c.ops(del("/ship/", "/ship0")),
		"a lease":       c.ops(leased("/ship/log", "2", 7)),
		"a decision":    c.mutation(Govern, Decision{Kind: Retire, Subject: r.id("a")}),
		"a compaction":  c.compaction(5),
		"an inner txn":  c.ops(Op{Kind: OpTxn, Txn: &Txn{Success: []Op{put("/ship/log", "2")}}}),
	} {
		if out := c.do(m).Outcomes[0]; out.Code != Failed {
			t.Errorf("%s: %s %s", name, out.Code, out.Reason)
		}
	}
	if c.reads("/ship/log") != "1" {
		t.Error("the island changed")
	}
}

// TestP53IslandsCarryNoWeight: what members sign in an island does not count in the scope, and what the scope's anchors
// sign makes nothing of an island final.
func TestP53IslandsCarryNoWeight(t *testing.T) {
	r := newShip(t)
	r.one(r.put("/ship/log", "1"))
	c := r.isle("a", "b", "c", "d") // all anchors: even these carry nothing
	c.do(c.put("/ship/log", "2"))
	h := c.past[len(c.past)-1]
	if err := final(c.realm, h).CheckIn(c.epoch()); err != nil {
		t.Fatalf("in the island: %v", err)
	}
	if err := final(c.realm, h).CheckIn(r.epoch()); !errors.Is(err, ErrInvalid) {
		t.Errorf("in the scope: %v", err)
	}
	forged := Finality{Header: h, Certificate: r.certificate(r.epoch(), h)} // the same anchors, in the scope's domain
	if err := forged.CheckIn(c.epoch()); err == nil {
		t.Error("a certificate of the scope makes a block of the island final")
	}
	k, err := r.epoch().Keyring()
	if err != nil {
		t.Fatal(err)
	}
	if err := k.CheckCertificate(final(c.realm, h).Certificate); err == nil {
		t.Error("a certificate of the island has weight in the scope")
	}
}

// TestP54ForgedRejoiningsAreRefused bends each part of a Rejoining.
func TestP54ForgedRejoiningsAreRefused(t *testing.T) {
	r := newShip(t)
	r.one(r.ops(put("/ship/log", "1"), put("/ship/other", "1")))
	c := r.isle("a", "b")
	c.do(c.put("/ship/log", "2"), c.put("/ship/other", "2"))
	src := c.source()
	whole, err := src.Next(c.g.Descent.Keys, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	content := canon.Encode(whole)
	alien := testKey(t, 77)
	for name, bend := range map[string]func(re *Rejoining){ // order-free: each is checked alone
		"another value":   func(re *Rejoining) { re.Changes[0].Value.Value = []byte("forged") },
		"another key":     func(re *Rejoining) { re.Changes[0].Entry.Key = []byte("/ship/forged") },
		"another author":  func(re *Rejoining) { re.Changes[0].Entry.Author = aweigh.Hash{1} },
		"no bundle":       func(re *Rejoining) { re.Bundles = nil },
		"no certificate":  func(re *Rejoining) { re.Final.Certificate.Signatures = nil },
		"one signer":      func(re *Rejoining) { re.Final.Certificate.Signatures = re.Final.Certificate.Signatures[:1] },
		"another lineage": func(re *Rejoining) { re.Final.Header.LineageRoot[0]++ },
		"a gap":           func(re *Rejoining) { re.Changes[1].Place.Index++ },
		"a signer for another": func(re *Rejoining) {
			re.Final.Certificate.Signatures[0].Bytes = re.Final.Certificate.Signatures[1].Bytes
		},
		"a bundle with another signature": func(re *Rejoining) {
			var b Bundle
			if err := canon.Decode(re.Bundles[0], &b); err != nil {
				t.Fatal(err)
			}
			b.Signature = alien.Sign(votes.ContextBundle, b.Signature)
			re.Bundles[0] = canon.Encode(b)
		},
		"anchors of a stranger": func(re *Rejoining) {
			g := c.g
			g.Anchors = []Anchor{{Name: "a", Key: alien.Public(), Score: 500_000}}
			re.Genesis = g.Encode()
		},
		"a policy of its own": func(re *Rejoining) {
			g := c.g
			g.Policy.Limits.TxnOps++
			re.Genesis = g.Encode()
		},
	} {
		var re Rejoining
		if err := canon.Decode(content, &re); err != nil {
			t.Fatal(err)
		}
		bend(&re)
		if _, err := Sign(r.names["a"], r.g.Policy.Limits, r.mutation(Rejoin, re)); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// What is well-formed, and none of this scope's.
	terms := src.Terms
	terms.Weights = append([]uint64(nil), terms.Weights...)
	terms.Weights[3]++
	re := src.Announcement()
	re.Terms = terms
	if out := r.rejoin("a", re); out.Code != Failed || out.Reason != reason(errOtherTerms) {
		t.Errorf("other terms: %s %q", out.Code, out.Reason)
	}
	stranger, err := Sign(testKey(t, 99), r.g.Policy.Limits, r.mutation(Rejoin, src.Announcement()))
	if err != nil {
		t.Fatal(err)
	}
	if out := r.add(r.next(nil, nil, stranger)).Outcomes[0]; out.Code != Failed || !strings.Contains(out.Reason, errNoAnchorsNode.Error()) {
		t.Errorf("by a stranger: %s %q", out.Code, out.Reason)
	}
}

// TestP54IslandsOfEarlierEpochsRejoin: the scope has gone on meanwhile, by several epochs and with another policy.
func TestP54IslandsOfEarlierEpochsRejoin(t *testing.T) {
	r := newRealm(t, func(p *Policy) { p.EpochBlocks, p.Partitions = 8, []Partition{shipPartition()} })
	r.turn()
	r.add(r.next(nil, nil, r.world.sign(r.put("/ship/log", "1"))...))
	c := r.isle("a", "b")
	c.do(c.put("/ship/log", "2"))
	for range 3 {
		r.turn()
	}
	r.takes(c, 1<<20)
	if got := r.reads("/ship/log"); got != "2" {
		t.Errorf("the log is %q", got)
	}
}

// TestP54RevokedAuthorsAreSetAside: rights are those in force when the scope takes a change.
func TestP54RevokedAuthorsAreSetAside(t *testing.T) {
	r := newShip(t)
	r.one(r.put("/ship/log", "1"))
	c := r.isle("a", "b")
	c.do(c.put("/ship/log", "2"))
	p := r.epoch().Policy
	p.Authors = []Author{{Name: "anchors", Who: Anchors}}
	for _, name := range []string{"a", "b", "c"} {
		r.approve(name, Decision{Kind: SetPolicy, Policy: &p})
	}
	r.turn()
	r.takes(c, 1<<20)
	if got := r.reads("/ship/log"); got != "1" {
		t.Errorf("the log is %q", got)
	}
	all, err := r.state.Islands()
	if err != nil || len(all) != 1 || all[0].Aside != 1 {
		t.Errorf("%+v, %v", all, err)
	}
}
