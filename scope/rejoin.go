package scope

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/lineage"
	"github.com/aweigh/aweigh/votes"
)

// Rejoining brings what an island decided back into its scope (P54). It proves itself: from the terms of the scope's
// epoch in which the island was founded follow the members, their certificate proves a final block of the island, and
// that block's header names the island's lineage, of which it shows the next entries, those of whole mutations, and one
// more if there is one. The first one of an island has no changes: it puts the island on record, so that islands which
// are found at about the same time have an order.
type Rejoining struct {
	_         struct{}      `cbor:",toarray"`
	Genesis   []byte        // of the island
	Terms     Terms         // of the scope's epoch to whose state the island was added
	Handovers []Handover    // of the island, to the epoch of Final
	Final     Finality      // of a block of the island
	Changes   []Provisional // whole mutations, in the order of the island's lineage
	After     []Provisional // the entry after them, if there is one: it shows that the last mutation is whole
	Bundles   [][]byte      // that hold these mutations
}

// Provisional is an entry of an island's lineage.
type Provisional struct {
	_     struct{} `cbor:",toarray"`
	Entry lineage.Entry
	Place lineage.Inclusion // in the lineage that the header of Rejoining.Final names
	Value KeyValue          // what the key holds after a change that shows content; otherwise zero
}

// CheckedRejoining is a Rejoining that is what it claims to be, apart from its signatures until these are verified,
// and from the terms, which the state must know.
type CheckedRejoining struct {
	Rejoining
	Island  aweigh.ScopeID
	Origin  Genesis // of the island
	bundles []*CheckedBundle
	groups  []provisional
}

// provisional is what one mutation of an island changed.
type provisional struct {
	mutation *CheckedMutation
	first    int64                   // index of its first entry
	after    int64                   // index after its last entry
	before   aweigh.Hash             // root of the lineage up to first
	root     aweigh.Hash             // root of the lineage up to after
	ops      []Op                    // puts and deletions of keys
	uids     map[string][]aweigh.UID // by key, in the order in which objects came to be
	keys     [][]byte                // of ops, and of other names of what they change
	fresh    map[string]bool         // by key of an entry: the first one about it shows that the island found nothing there
}

// Bounds of a Rejoining, whose signatures are verified one by one.
const (
	maxRejoinBundles   = 64
	maxRejoinHandovers = 16
	maxRejoinSigned    = 256 // signatures in all, besides as many as a roster may have anchors
)

// asideAnEntry is how many keys one entry about what was set aside may be about, at most: those of a transaction, with
// all their other names.
const asideAnEntry = 1 << 13

// checkRejoining reads a Rejoining, and checks all of it but signatures.
func checkRejoining(content []byte) (*CheckedRejoining, error) {
	c := new(CheckedRejoining)
	if err := canon.Decode(content, &c.Rejoining); err != nil {
		return nil, err
	}
	if len(c.Bundles) > maxRejoinBundles || len(c.Handovers) > maxRejoinHandovers {
		return nil, fmt.Errorf("%d bundles and %d handovers, at most %d and %d are taken", len(c.Bundles), len(c.Handovers), maxRejoinBundles, maxRejoinHandovers)
	}
	var err error
	if c.Origin, err = DecodeGenesis(c.Genesis); err != nil {
		return nil, err
	}
	if !c.Origin.IsIsland() {
		return nil, errors.New("the scope that rejoins is no island")
	}
	c.Island = GenesisHash(c.Genesis)
	if err := c.founded(); err != nil {
		return nil, err
	}
	mutations, err := c.read()
	if err != nil {
		return nil, err
	}
	return c, c.group(mutations)
}

// founded checks that the members, their policy and their partition follow from the terms of the scope.
func (c *CheckedRejoining) founded() error {
	g := &c.Origin
	ids := make([]aweigh.AnchorID, len(g.Anchors))
	for i := range g.Anchors {
		ids[i] = g.Anchors[i].Key.ID()
	}
	if _, err := c.Terms.roster(); err != nil {
		return err
	}
	anchors, _, failure := c.Terms.islanders(g.Prefix(), ids)
	switch {
	case failure != nil:
		return failure
	case !bytes.Equal(canon.Encode(anchors), canon.Encode(g.Anchors)):
		return errors.New("its anchors are not those of the scope")
	case g.Policy.Hash() != c.Terms.Policy.islandPolicy(g.Prefix(), len(anchors)).Hash():
		return errors.New("its policy does not follow from that of the scope")
	}
	return nil
}

// noProofs refuses a bundle with a proof, which no island has: to look at one takes work, and it may hold others.
func noProofs(raw []byte) error {
	b, err := decodeBundle(raw)
	for i := 0; i < len(b.Mutations) && err == nil; i++ {
		var m Mutation
		if err = m.decode(b.Mutations[i]); err == nil && m.Class.alone() {
			err = fmt.Errorf("a mutation to %s in an island", m.Class)
		}
	}
	return err
}

// read opens the bundles.
func (c *CheckedRejoining) read() (map[aweigh.Hash]*CheckedMutation, error) {
	lim := c.Origin.Policy.Limits
	later := func(votes.PublicKey, votes.Context, []byte, []byte) error { return nil } // see verify
	mutations := make(map[aweigh.Hash]*CheckedMutation)
	for i, raw := range c.Bundles {
		if err := noProofs(raw); err != nil {
			return nil, err
		}
		b, err := CheckBundle(raw, lim, later)
		if err != nil {
			return nil, err
		}
		if b.Scope() != c.Island {
			return nil, fmt.Errorf("bundle %d is for another scope", i)
		}
		c.bundles = append(c.bundles, b)
		for j := range b.mutations {
			mutations[b.mutations[j].ID] = &b.mutations[j]
		}
	}
	return mutations, nil
}

// group checks the entries, and sorts them by mutation.
func (c *CheckedRejoining) group(mutations map[aweigh.Hash]*CheckedMutation) error {
	h := &c.Final.Header
	log := lineage.Head{Size: h.LineageSize, Root: h.LineageRoot}
	for i := range c.Changes {
		p := &c.Changes[i]
		e := &p.Entry
		begins := i == 0 || e.Mutation != c.Changes[i-1].Entry.Mutation || e.Height != c.Changes[i-1].Entry.Height
		if i > 0 && p.Place.Index != c.Changes[i-1].Place.Index+1 {
			return fmt.Errorf("entry %d does not follow the one before", p.Place.Index)
		}
		if p.Place.Index < c.Origin.Descent.Keys {
			return fmt.Errorf("entry %d is of the founding", p.Place.Index)
		}
		if err := p.Place.Verify(e.Hash(), log); err != nil {
			return fmt.Errorf("entry %d: %w", p.Place.Index, err)
		}
		m := mutations[e.Mutation]
		if m == nil || m.Author != e.Author || e.Scope != c.Island {
			return fmt.Errorf("entry %d is about a mutation that no bundle here holds", p.Place.Index)
		}
		if begins {
			before := p.Place.Before().Root
			if n := len(c.groups); n > 0 {
				c.groups[n-1].root = before
			}
			c.groups = append(c.groups, provisional{mutation: m, first: p.Place.Index, before: before, uids: make(map[string][]aweigh.UID), fresh: make(map[string]bool)})
		}
		g := &c.groups[len(c.groups)-1]
		if prefix := c.Origin.Prefix(); len(e.Key) > 0 && !bytes.HasPrefix(e.Key, prefix) {
			return fmt.Errorf("entry %d: a change of %q in an island of %q", p.Place.Index, e.Key, prefix)
		}
		if err := g.take(p); err != nil {
			return fmt.Errorf("entry %d: %w", p.Place.Index, err)
		}
	}
	if err := c.whole(log); err != nil {
		return err
	}
	for i := range c.groups {
		if g := &c.groups[i]; !g.asked() {
			return fmt.Errorf("entry %d is of no change that its author asked for", g.first)
		}
	}
	return nil
}

// whole checks that no entry of the last mutation is left out.
func (c *CheckedRejoining) whole(log lineage.Head) error {
	if len(c.Changes) == 0 || c.Changes[len(c.Changes)-1].Place.Index+1 == log.Size {
		if len(c.After) > 0 {
			return errors.New("it shows an entry after which there is none")
		}
		if n := len(c.groups); n > 0 {
			c.groups[n-1].root = log.Root
		}
		return nil
	}
	last := &c.Changes[len(c.Changes)-1]
	if len(c.After) != 1 || c.After[0].Place.Index != last.Place.Index+1 {
		return fmt.Errorf("the entry after %d is not shown, so that its mutation may have more of them", last.Place.Index)
	}
	p := &c.After[0]
	if err := p.Place.Verify(p.Entry.Hash(), log); err != nil {
		return fmt.Errorf("entry %d: %w", p.Place.Index, err)
	}
	if p.Entry.Mutation == last.Entry.Mutation && p.Entry.Height == last.Entry.Height {
		return fmt.Errorf("entry %d is of the same mutation as the one before, and left out", p.Place.Index)
	}
	c.groups[len(c.groups)-1].root = p.Place.Before().Root
	return nil
}

// asked reports whether the author of a mutation asked for what an island says that it changed: for the puts of one of
// its branches, and for all or some of the deletions there, in their order.
func (g *provisional) asked() bool {
	if len(g.ops) == 0 {
		return true
	}
	if g.mutation.islandTakes() != nil {
		return false
	}
	of := func(branch []Op) bool {
		left := g.ops
		for i := range branch {
			op := &branch[i]
			if len(left) > 0 && left[0].Kind == op.Kind && bytes.Equal(left[0].Key, op.Key) && bytes.Equal(left[0].Value, op.Value) {
				left = left[1:]
			} else if op.Kind == OpPut {
				return false
			}
		}
		return len(left) == 0
	}
	return of(g.mutation.Txn.Success) || of(g.mutation.Txn.Failure)
}

// take adds an entry to what its mutation changed.
func (g *provisional) take(p *Provisional) error {
	e := &p.Entry
	g.after = p.Place.Index + 1
	switch {
	case e.Class == lineage.Failed: // it changed nothing
		return nil
	}
	if _, seen := g.fresh[string(e.Key)]; !seen {
		g.fresh[string(e.Key)] = e.Class == lineage.Insert
	}
	switch {
	case e.Class == lineage.AliasFollow: // it follows from the put before it
	case e.Class.Shows():
		v := &p.Value
		if v.Digest() != e.Posterior || v.UID != e.Object || !bytes.Equal(v.Key, e.Key) || v.Version < 1 {
			return errors.New("it shows other content than it names")
		}
		if e.Class == lineage.Insert {
			if v.UID != aweigh.NewUID(e.Mutation, v.Sub) {
				return errors.New("a new object with the UID of another one")
			}
			g.uids[string(e.Key)] = append(g.uids[string(e.Key)], v.UID)
		}
		g.ops = append(g.ops, Op{Kind: OpPut, Key: e.Key, Value: v.Value})
	case e.Class.Clears():
		g.ops = append(g.ops, Op{Kind: OpDelete, Key: e.Key})
	default:
		return fmt.Errorf("a change of class %s in an island", e.Class)
	}
	g.keys = append(g.keys, e.Key)
	return nil
}

// signatures is how many there are: of the certificates, and on the bundles.
func (c *CheckedRejoining) signatures() int {
	n := len(c.bundles) + len(c.Final.Certificate.Signatures)
	for i := range c.Handovers {
		n += len(c.Handovers[i].Final.Certificate.Signatures)
	}
	return n
}

// verify checks the signatures: of the certificates, and on the bundles.
func (c *CheckedRejoining) verify(verify votes.Verifier) error {
	e, err := c.Origin.Epoch()
	if err != nil {
		return err
	}
	for i := range c.Handovers {
		if e, err = e.follow(c.Handovers[i], verify); err != nil {
			return err
		}
	}
	k, err := e.Keyring()
	if err != nil {
		return err
	}
	if err := c.Final.Check(k.With(verify)); err != nil {
		return err
	}
	for _, b := range c.bundles {
		if err := verify(b.author, votes.ContextBundle, b.id[:], b.signature); err != nil {
			return err
		}
	}
	return nil
}

// cost is what taking the changes may cost at most, by their form.
func (c *CheckedRejoining) cost() (units int64) {
	for i := range c.groups {
		units += c.groups[i].cost()
	}
	return units + rejoinUnits
}

// cost is what the mutation of a group may cost: for each key, the search for what changed it, and the change.
func (g *provisional) cost() int64 {
	n := int64(mutationUnit)
	if len(g.ops) == 0 { // it failed, whatever it was
		return n
	}
	g.mutation.Txn.Ranges(func(_, _ []byte) bool {
		n += 4 * opUnits
		return true
	})
	for i := range g.ops {
		n += opUnits + deleteUnits + lookCost(len(g.ops[i].Value))
	}
	return n
}

// rejoinUnits is what a Rejoining costs, however many changes it has: the islands on record are looked at.
const rejoinUnits = 500
