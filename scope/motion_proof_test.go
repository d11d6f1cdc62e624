package scope

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/lineage"
	"github.com/aweigh/aweigh/votes"
)

// chronicle is an assembly that keeps its blocks, all of epoch 0.
type chronicle struct {
	*assembly
	blocks []*Block
}

func newChronicle(t *testing.T, change ...func(*Policy)) *chronicle {
	return &chronicle{assembly: newAssembly(t, 4, change...)}
}

// add is a block with mutations and ballots.
func (c *chronicle) add(ballots []votes.MotionBallot, muts ...Mutation) *Block {
	c.t.Helper()
	c.now = c.now.Add(time.Second)
	b := c.carrying(ballots, muts...)
	c.execute(b)
	c.blocks = append(c.blocks, b)
	return b
}

// open opens a motion.
func (c *chronicle) open(m Mutation) votes.MotionID {
	c.t.Helper()
	b := c.add(nil, m)
	id := b.Bundles[0].Mutations()[0].ID
	if c.fate(id) != "open" {
		c.t.Fatalf("the motion is %s", c.fate(id))
	}
	return id
}

func (c *chronicle) final(t *testing.T, at aweigh.Height) Finality {
	tip := c.blocks[len(c.blocks)-1].Header
	f := Finality{Header: c.blocks[at-1].Header, Certificate: certify(t, c.g, tip)}
	for _, b := range c.blocks[at:] {
		f.Descendants = append(f.Descendants, b.Header)
	}
	return f
}

func (c *chronicle) ancestry(t *testing.T) Ancestry {
	return Ancestry{Genesis: c.g, Head: c.final(t, aweigh.Height(len(c.blocks)))}
}

func (c *chronicle) minutes(t *testing.T, id votes.MotionID) *Minutes {
	t.Helper()
	m, err := c.state.Minutes(id)
	if err != nil || m == nil {
		t.Fatalf("minutes %v, %v", m, err)
	}
	if m, err = DecodeMinutes(m.Encode()); err != nil {
		t.Fatal(err)
	}
	return m
}

func (c *chronicle) proveMotion(t *testing.T, id votes.MotionID) *MotionProof {
	t.Helper()
	m := c.minutes(t, id)
	p, err := NewMotionProof(c.ancestry(t), c.state, &m.Motion, c.blocks[m.Motion.Height-1], c.final(t, m.Motion.Height))
	if err != nil {
		t.Fatal(err)
	}
	if p, err = DecodeMotionProof(p.Encode()); err != nil {
		t.Fatal(err)
	}
	return p
}

func (c *chronicle) proveCarried(t *testing.T, id votes.MotionID, key string) *KeyProof {
	t.Helper()
	m := c.minutes(t, id)
	p, err := NewKeyProof(c.ancestry(t), c.state, []byte(key), c.blocks[m.Motion.Height-1], c.final(t, m.Motion.Height), m)
	if err != nil {
		t.Fatal(err)
	}
	if p, err = DecodeKeyProof(p.Encode()); err != nil {
		t.Fatal(err)
	}
	return p
}

// contested is a motion that puts, replaces and deletes, with the content before.
func contested(t *testing.T, change ...func(*Policy)) (*chronicle, votes.MotionID) {
	c := newChronicle(t, func(p *Policy) { p.Approvals[0].Prefix = []byte("/secrets/db/") }, func(p *Policy) {
		for _, f := range change {
			f(p)
		}
	})
	// What stood there before the approval was asked for is not to be had, so it comes by motions.
	for _, k := range []string{"/secrets/db/a", "/secrets/db/b", "/secrets/db/x1", "/secrets/db/x2"} {
		id := c.open(c.put(k, "old "+k))
		c.add(c.approve(id, 4))
	}
	m := c.ops(put("/secrets/db/new", "n"), put("/secrets/db/a", "new"), del("/secrets/db/b", ""), del("/secrets/db/x", "/secrets/db/y"))
	m.Justification, m.Caller = "rotate", "cert:alice"
	return c, c.open(m)
}

func TestMotionProofConvincesWhoKnowsOnlyTheNetwork(t *testing.T) {
	c, id := contested(t)
	c.add(nil)
	r, err := c.proveMotion(t, id).Verify(c.g.Hash())
	if err != nil {
		t.Fatal(err)
	}
	if r.Motion.ID() != id || r.Mutation.Justification != "rotate" || r.Mutation.Caller != "cert:alice" || r.Author.ID() != c.author.Public().ID() ||
		len(r.Motion.Voters) != 4 || r.Motion.Deadline != r.Origin.Time.Add(time.Hour) || r.Origin.Weight != r.Origin.Total {
		t.Fatalf("report %+v", r)
	}
	want := []struct {
		class  lineage.Class
		held   []string
		proven bool
	}{
		{lineage.Insert, nil, true},
		{lineage.Update, []string{"old /secrets/db/a"}, true},
		{lineage.Delete, []string{"old /secrets/db/b"}, true},
		{lineage.Delete, []string{"old /secrets/db/x1", "old /secrets/db/x2"}, false},
	}
	if len(r.Effects) != len(want) {
		t.Fatalf("%d effects", len(r.Effects))
	}
	for i, w := range want {
		e := &r.Effects[i]
		if e.Class() != w.class || e.Proven != w.proven || len(e.Held) != len(w.held) || int(e.Keys) != len(w.held) {
			t.Fatalf("effect %d: %s, %d keys, held %v, proven %v", i, e.Class(), e.Keys, e.Held, e.Proven)
		}
		for j := range w.held {
			if string(e.Held[j].Value) != w.held[j] {
				t.Errorf("effect %d: held %q", i, e.Held[j].Value)
			}
		}
	}
	if _, err := c.proveMotion(t, id).Verify(aweigh.Sum([]byte("other"))); !errors.Is(err, ErrProof) {
		t.Fatalf("another network: %v", err)
	}
}

// TestBareMotionProofs: the newest final block proves a motion that it ordered, and the report does not claim facts
// that only a later block can prove.
func TestBareMotionProofs(t *testing.T) {
	c, id := contested(t)
	raw := c.proveMotion(t, id).Encode()
	bent := func(bend func(*MotionProof)) (MotionReport, error) {
		p, err := DecodeMotionProof(raw)
		if err != nil {
			t.Fatal(err)
		}
		bend(p)
		return p.Verify(c.g.Hash())
	}
	r, err := bent(func(*MotionProof) {})
	if err != nil || !r.Bare || r.Motion.ID() != id || r.Head.Height != r.Origin.Height || len(r.Effects) != 4 {
		t.Fatalf("%v, %+v", err, r)
	}
	for i := range r.Effects {
		if r.Effects[i].Proven || len(r.Effects[i].Held) > 0 {
			t.Errorf("effect %d is said to be proven: %+v", i, r.Effects[i])
		}
	}
	c.add(nil)
	full := c.proveMotion(t, id)
	if r, err := full.Verify(c.g.Hash()); err != nil || r.Bare {
		t.Errorf("with a later block: %v, bare %v", err, r.Bare)
	}
	for name, bend := range map[string]func(*MotionProof){
		"a later head without the entry": func(p *MotionProof) { p.Ancestry.Head = full.Ancestry.Head },
		"content":                        func(p *MotionProof) { p.Held = full.Held },
		"another's mutation":             func(p *MotionProof) { p.Origin.Mutation = c.put("/secrets/db/a", "other").Encode() },
		"another approval":               func(p *MotionProof) { p.Motion.Approval.Num = 0 },
		"another rule":                   func(p *MotionProof) { p.Motion.Rule.Num = 0 },
		"other voters":                   func(p *MotionProof) { p.Motion.Voters = p.Motion.Voters[1:] },
		"another deadline":               func(p *MotionProof) { p.Motion.Deadline++ },
		"not final": func(p *MotionProof) {
			p.Origin.Final.Certificate.Signatures = p.Origin.Final.Certificate.Signatures[:2]
		},
	} {
		if _, err := bent(bend); !errors.Is(err, ErrProof) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestMotionProofHasTheContentBefore: not later content, nor compacted content.
func TestMotionProofHasTheContentBefore(t *testing.T) {
	c, id := contested(t)
	other := c.open(c.put("/secrets/db/a", "in between"))
	c.add(c.approve(other, 3))
	r, err := c.proveMotion(t, id).Verify(c.g.Hash())
	if err != nil || string(r.Effects[1].Held[0].Value) != "old /secrets/db/a" {
		t.Fatalf("%v, %+v", err, r.Effects)
	}
	c.add(nil, c.compaction(c.state.Head().Revision))
	r, err = c.proveMotion(t, id).Verify(c.g.Hash())
	if err != nil || r.Effects[1].Proven || r.Effects[1].Keys != 1 || len(r.Effects[1].Held) != 0 || !r.Effects[0].Proven {
		t.Fatalf("%v, %+v", err, r.Effects)
	}
}

// TestMotionProofBearsNoChange flips bits in every byte.
func TestMotionProofBearsNoChange(t *testing.T) {
	testshort.SkipUnlessLong(t)
	c, id := contested(t)
	c.add(nil)
	raw := c.proveMotion(t, id).Encode()
	for i := range raw {
		bent := append([]byte(nil), raw...)
		bent[i] ^= 1 << (i % 8)
		p, err := DecodeMotionProof(bent)
		if err != nil {
			continue
		}
		if _, err := p.Verify(c.g.Hash()); !errors.Is(err, ErrProof) {
			t.Fatalf("byte %d of %d changed from %#x to %#x: %v", i, len(raw), raw[i], bent[i], err)
		}
	}
	for i := range raw {
		if _, err := DecodeMotionProof(raw[:i]); !errors.Is(err, ErrProof) {
			t.Fatalf("the first %d bytes: %v", i, err)
		}
	}
}

// reopened returns a proof whose motion was changed together with the entry that
// names it, so that only a new computation of the motion shows it.
func reopened(t *testing.T, c *chronicle, id votes.MotionID, bend func(*Motion)) error {
	t.Helper()
	m := c.minutes(t, id).Motion
	b := c.blocks[m.Height-1]
	bend(&m)
	o, err := originOf(id, b, Finality{Header: b.Header})
	if err != nil {
		t.Fatal(err)
	}
	var mut Mutation
	if err := mut.decode(m.Mutation); err != nil {
		t.Fatal(err)
	}
	e, _, err := c.state.Lineage().Entry(m.Entry)
	if err != nil {
		t.Fatal(err)
	}
	e.Posterior, e.Revision = m.Hash(), m.Revision
	log := lineage.Open(kv.NewOverlay(nothing{}), nil, 0)
	fill := make([]lineage.Entry, m.Entry+1)
	for i := range fill {
		fill[i] = e
	}
	store := kv.NewOverlay(nothing{})
	ops, err := log.Append(fill...)
	if err != nil {
		t.Fatal(err)
	}
	store.Apply(ops...)
	log = lineage.Open(store, nil, m.Entry+1)
	root, err := log.Root()
	if err != nil {
		t.Fatal(err)
	}
	a := Ancestry{Genesis: c.g}
	a.Head.Header.LineageSize, a.Head.Header.LineageRoot = m.Entry+1, root
	l, err := a.list(log, m.Entry)
	if err != nil {
		t.Fatal(err)
	}
	in, err := c.g.Epoch()
	if err != nil {
		t.Fatal(err)
	}
	m.Mutation = nil
	_, err = o.opened(m, &mut, &a, &l, in)
	return err
}

// TestMotionsAreComputedAgain: the verifier computes what follows from policy and
// roster by itself.
func TestMotionsAreComputedAgain(t *testing.T) {
	c, id := contested(t)
	if err := reopened(t, c, id, func(*Motion) {}); err != nil {
		t.Fatal(err)
	}
	for name, bend := range map[string]func(*Motion){
		"approval": func(m *Motion) { m.Approval.Num = 1 },
		"window":   func(m *Motion) { m.Approval.Window++; m.Deadline++ },
		"deadline": func(m *Motion) { m.Deadline++ },
		"rule":     func(m *Motion) { m.Rule.Num-- },
		"fewer":    func(m *Motion) { m.Rule.MinAnchors-- },
		"weight":   func(m *Motion) { m.Voters[0].Weight++ },
		"voter":    func(m *Motion) { m.Voters = m.Voters[1:] },
		"stranger": func(m *Motion) { m.Voters[0].Key = testKey(t, 77).Public() },
		"height":   func(m *Motion) { m.Height-- },
		"time":     func(m *Motion) { m.Opened--; m.Deadline-- },
		"epoch":    func(m *Motion) { m.Epoch++ },
	} {
		if err := reopened(t, c, id, bend); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}

func TestProofOfWhatAMotionCarried(t *testing.T) {
	alice := testKey(t, 70)
	c, id := contested(t, func(p *Policy) {
		p.Approvals[0].Approvers = []Approver{{Name: "alice", Key: alice.Public(), Share: 100_000}}
	})
	c.add(c.approve(id, 1))
	vote := votes.MotionVote{Network: c.g.Hash(), Scope: c.g.Hash(), Motion: id, Choice: votes.Approve}
	b, err := votes.SignMotionBallot(alice.Signer(), vote, "seen")
	if err != nil {
		t.Fatal(err)
	}
	c.add([]votes.MotionBallot{b})
	c.add(c.approve(id, 3)[1:])
	c.add([]votes.MotionBallot{c.ballot(c.keys[3], id, votes.Reject)}) // late
	c.add(nil)
	for _, k := range []struct{ key, value string }{{"/secrets/db/new", "n"}, {"/secrets/db/a", "new"}, {"/secrets/db/b", ""}, {"/secrets/db/x2", ""}} {
		r, err := c.proveCarried(t, id, k.key).Verify(c.g.Hash())
		if err != nil {
			t.Fatalf("%s: %v", k.key, err)
		}
		if r.Kv != nil && string(r.Kv.Value) != k.value || (r.Kv == nil) != (k.value == "") || r.Approved == nil {
			t.Fatalf("%s: %+v", k.key, r)
		}
		a := r.Approved
		if a.Tally.Anchors != 3 || a.Tally.Verdict != votes.Carried || len(a.Ballots) != 5 || a.Height != r.Entry.Height || a.Height <= r.Origin.Height {
			t.Fatalf("approved %+v", a)
		}
		if x := a.Ballots[1]; x.Name != "alice" || x.Comment != "seen" || x.Late || x.Choice != votes.Approve {
			t.Errorf("alice %+v", x)
		}
		if x := a.Ballots[4]; !x.Late || x.Choice != votes.Reject || x.Weight != a.Motion.Voters[3].Weight || x.Name != "d" {
			t.Errorf("late %+v", x)
		}
	}
}

// TestCarriedInItsFirstBlock: ballots that came before the motion carry it where it
// opens (P35).
func TestCarriedInItsFirstBlock(t *testing.T) {
	c := newChronicle(t)
	m := c.put("/secrets/a", "1")
	signed := m
	signed.Author = c.author.Public().ID()
	id := ID(signed.Encode())
	c.add(c.approve(id, 3), m)
	c.add(nil)
	r, err := c.proveCarried(t, id, "/secrets/a").Verify(c.g.Hash())
	if err != nil || r.Approved == nil || r.Approved.Height != r.Origin.Height {
		t.Fatalf("%+v, %v", r, err)
	}
	p := c.proveCarried(t, id, "/secrets/a")
	p.Assent = nil
	if _, err := p.Verify(c.g.Hash()); !errors.Is(err, ErrProof) {
		t.Errorf("without the approvals: %v", err)
	}
}

// twoCarried is a world where two motions were carried, and the proof of the first.
func twoCarried(t *testing.T) (c *chronicle, raw []byte, other votes.MotionID) {
	c = newChronicle(t)
	id := c.open(c.put("/secrets/a", "1"))
	c.add(append(c.approve(id, 2), c.ballot(c.keys[2], id, votes.Approve)))
	c.add([]votes.MotionBallot{c.ballot(c.keys[3], id, votes.Approve)})
	other = c.open(c.put("/secrets/b", "1"))
	c.add(c.approve(other, 4))
	c.add(nil)
	return c, c.proveCarried(t, id, "/secrets/a").Encode(), other
}

// TestCarriedProofBearsNoChange flips bits in every byte.
func TestCarriedProofBearsNoChange(t *testing.T) {
	testshort.SkipUnlessLong(t)
	c, raw, _ := twoCarried(t)
	for i := range raw {
		bent := bytes.Clone(raw)
		bent[i] ^= 1 << (i % 8)
		p, err := DecodeKeyProof(bent)
		if err != nil {
			continue
		}
		if _, err := p.Verify(c.g.Hash()); !errors.Is(err, ErrProof) {
			t.Fatalf("byte %d of %d changed from %#x to %#x: %v", i, len(raw), raw[i], bent[i], err)
		}
	}
}

// TestCarriedProofBearsNoExchange leaves parts out, and puts true parts of other
// proofs in.
func TestCarriedProofBearsNoExchange(t *testing.T) {
	c, raw, other := twoCarried(t)
	foreign := c.proveCarried(t, other, "/secrets/b")
	for name, bend := range map[string]func(*KeyProof){
		"no approvals":    func(p *KeyProof) { p.Assent = nil },
		"too few":         func(p *KeyProof) { p.Assent.Ballots = p.Assent.Ballots[1:] },
		"one twice":       func(p *KeyProof) { p.Assent.Ballots[1] = p.Assent.Ballots[0] },
		"late as in time": func(p *KeyProof) { b := p.Assent.Ballots; p.Assent.Ballots = append(b[:2:2], b[3]) },
		"forged": func(p *KeyProof) {
			b, err := votes.DecodeMotionBallot(p.Assent.Ballots[0].Ballot)
			if err != nil {
				t.Fatal(err)
			}
			b.Signature[3] ^= 1
			p.Assent.Ballots[0].Ballot = b.Encode()
		},
		"not recorded so":      func(p *KeyProof) { p.Assent.Ballots[0].Record.Entry.Height++ },
		"not closed so":        func(p *KeyProof) { p.Assent.Closed.Entry.Index++ },
		"found something":      func(p *KeyProof) { p.Assent.Motion.Basis[0].Keys++ },
		"of another motion":    func(p *KeyProof) { p.Assent.Ballots[0] = foreign.Assent.Ballots[0] },
		"another motion's":     func(p *KeyProof) { p.Assent = foreign.Assent },
		"another end":          func(p *KeyProof) { p.Assent.Closed = foreign.Assent.Closed },
		"another's change":     func(p *KeyProof) { p.Change, p.Kv = foreign.Change, foreign.Kv },
		"its opening as end":   func(p *KeyProof) { p.Assent.Closed = p.Assent.Opened },
		"out of order":         func(p *KeyProof) { b := p.Assent.Ballots; b[0], b[1] = b[1], b[0] },
		"repeats the mutation": func(p *KeyProof) { p.Assent.Motion.Mutation = p.Origin.Mutation },
	} {
		p, err := DecodeKeyProof(raw)
		if err != nil {
			t.Fatal(err)
		}
		bend(p)
		if _, err := p.Verify(c.g.Hash()); !errors.Is(err, ErrProof) {
			t.Errorf("%s: %v", name, err)
		}
	}
	p, err := DecodeKeyProof(raw)
	if err != nil {
		t.Fatal(err)
	}
	p.Assent.Ballots = p.Assent.Ballots[:3] // those in time suffice
	if _, err := p.Verify(c.g.Hash()); err != nil {
		t.Errorf("without the late one: %v", err)
	}
}

// TestOlderContentIsNotWhatWasThere: it was written once, but replaced before the
// motion opened.
func TestOlderContentIsNotWhatWasThere(t *testing.T) {
	c := newChronicle(t)
	for _, v := range []string{"first", "second"} {
		c.add(c.approve(c.open(c.put("/secrets/a", v)), 4))
	}
	id := c.open(c.put("/secrets/a", "third"))
	c.add(nil)
	p := c.proveMotion(t, id)
	if r, err := p.Verify(c.g.Hash()); err != nil || string(r.Effects[0].Held[0].Value) != "second" {
		t.Fatalf("%+v, %v", r.Effects, err)
	}
	old, err := c.state.Range([]byte("/secrets/a"), nil, Range{Revision: 2})
	if err != nil || string(old.Kvs[0].Value) != "first" {
		t.Fatalf("%+v, %v", old, err)
	}
	l, err := p.Ancestry.list(c.state.Lineage(), old.Kvs[0].Entry)
	if err != nil {
		t.Fatal(err)
	}
	p.Held[0] = Held{Kv: old.Kvs[0], Change: l}
	if _, err := p.Verify(c.g.Hash()); !errors.Is(err, ErrProof) {
		t.Errorf("older content: %v", err)
	}
}

// TestChangesAreOfTheirOwnMotion: of two that one block carried, neither proves the
// other's change.
func TestChangesAreOfTheirOwnMotion(t *testing.T) {
	c := newChronicle(t)
	x, y := c.open(c.put("/secrets/x", "1")), c.open(c.put("/secrets/y", "1"))
	c.add(append(c.approve(x, 4), c.approve(y, 4)...))
	c.add(nil)
	px, py := c.proveCarried(t, x, "/secrets/x"), c.proveCarried(t, y, "/secrets/y")
	for _, pair := range [][2]*KeyProof{{px, py}, {py, px}} {
		p := *pair[0]
		if _, err := p.Verify(c.g.Hash()); err != nil {
			t.Fatal(err)
		}
		p.Change, p.Kv = pair[1].Change, pair[1].Kv
		if _, err := p.Verify(c.g.Hash()); !errors.Is(err, ErrProof) {
			t.Errorf("with the other's change: %v", err)
		}
	}
}

// TestMotionProofBearsNoExchange puts true parts of other proofs into one.
func TestMotionProofBearsNoExchange(t *testing.T) {
	c, id := contested(t)
	other := c.open(c.put("/secrets/db/a", "in between"))
	c.add(c.approve(other, 4))
	c.add(nil)
	good, foreign := c.proveMotion(t, id), c.proveMotion(t, other)
	raw := good.Encode()
	m := c.minutes(t, other)
	newer, err := NewKeyProof(c.ancestry(t), c.state, []byte("/secrets/db/a"), c.blocks[m.Motion.Height-1], c.final(t, m.Motion.Height), m)
	if err != nil {
		t.Fatal(err)
	}
	for name, bend := range map[string]func(*MotionProof){
		"another's mutation": func(p *MotionProof) { p.Origin = foreign.Origin },
		"another motion":     func(p *MotionProof) { p.Motion, p.Opened = foreign.Motion, foreign.Opened },
		"another opening":    func(p *MotionProof) { p.Opened = foreign.Opened },
		"the other branch":   func(p *MotionProof) { p.Motion.Success = false },
		"what it found":      func(p *MotionProof) { p.Motion.Basis[1].Newest++ },
		"what it would do":   func(p *MotionProof) { p.Motion.Impact.Bytes++ },
		"found something":    func(p *MotionProof) { p.Motion.Basis[0].Keys++ },
		"newer content":      func(p *MotionProof) { p.Held[0] = Held{Kv: *newer.Kv, Change: newer.Change} },
		"content of another": func(p *MotionProof) { p.Held[0].Kv.Value = []byte("x") },
		"content without":    func(p *MotionProof) { p.Held[0].Change = p.Held[1].Change },
		"out of order":       func(p *MotionProof) { p.Held[0], p.Held[1] = p.Held[1], p.Held[0] },
		"twice":              func(p *MotionProof) { p.Held = append(p.Held[:1:1], p.Held...) },
		"too much":           func(p *MotionProof) { p.Held = append(p.Held, p.Held[3]) },
		"its mutation twice": func(p *MotionProof) { p.Motion.Mutation = p.Origin.Mutation },
		"not final": func(p *MotionProof) {
			p.Ancestry.Head.Certificate.Signatures = p.Ancestry.Head.Certificate.Signatures[:2]
		},
		"origin not final": func(p *MotionProof) {
			p.Origin.Final.Certificate.Signatures = p.Origin.Final.Certificate.Signatures[:2]
		},
	} {
		p, err := DecodeMotionProof(raw)
		if err != nil {
			t.Fatal(err)
		}
		bend(p)
		if _, err := p.Verify(c.g.Hash()); !errors.Is(err, ErrProof) {
			t.Errorf("%s: %v", name, err)
		}
	}
	p, err := DecodeMotionProof(raw)
	if err != nil {
		t.Fatal(err)
	}
	p.Held = p.Held[1:] // a report of less content is still true
	if r, err := p.Verify(c.g.Hash()); err != nil || r.Effects[1].Proven {
		t.Errorf("without what one key held: %+v, %v", r.Effects, err)
	}
}

func FuzzDecodeMotionProof(f *testing.F) {
	w := newWorld(f)
	f.Add((&MotionProof{Ancestry: Ancestry{Genesis: w.g}}).Encode())
	f.Add((&MotionProof{Ancestry: Ancestry{Genesis: w.g}, Held: make([]Held, 2)}).Encode())
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := DecodeMotionProof(data)
		if err != nil {
			if !errors.Is(err, ErrProof) {
				t.Fatal(err)
			}
			return
		}
		if !bytes.Equal(p.Encode(), data) {
			t.Fatal("a proof with two encodings")
		}
		if _, err := p.Verify(w.g.Hash()); err == nil {
			t.Fatal("a proof out of nothing")
		}
	})
}
