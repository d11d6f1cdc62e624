package model

import (
	"errors"
	"fmt"
	"math/rand"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/quorum"
	ballots "github.com/aweigh/aweigh/votes"
)

// living is a world of the model in which each honest anchor has an engine, a guard and a store that live as long as
// the trace. It plays the part of package node: it signs, keeps the record, goes from epoch to epoch, and listens.
type living struct {
	t     *testing.T
	rnd   *rand.Rand
	rules quorum.Rules
	world world
	state state
	rings []*ballots.Keyring          // by epoch
	seeds []aweigh.Hash               // by epoch
	keys  []ballots.PrivateKey        // of the honest anchors, and of the liar
	lives []*life                     // by honest anchor
	cast  []ballots.Ballot            // by honest anchors
	plans [len(state{}.parents)]block // parents of the blocks that were proposed
	did   map[string]int
}

// life is one honest anchor.
type life struct {
	i, epoch int
	engine   *quorum.Engine
	guard    *ballots.Guard
	disk     []kv.Op
	begun    []int // how much was on disk when each epoch began
	proofs   []quorum.Certificate
	grounds  map[aweigh.View][]quorum.Vote // mode fast
	finals   []written
	now      aweigh.Instant

	listens bool             // it signs nothing until it listened (P9)
	again   bool             // and listens in the next epoch as well
	since   aweigh.View      // nothing new is signed below
	held    []quorum.Subject // to sign then
}

// written is a finalization that is on disk, and where.
type written struct {
	at int
	c  quorum.Certificate
}

func newLiving(t *testing.T, rules quorum.Rules, w world, seed int) *living {
	x := &living{t: t, rnd: rand.New(rand.NewSource(int64(seed))), rules: rules, world: w, did: make(map[string]int)}
	x.world.named = true
	for i := range w.honest + 1 {
		key, err := ballots.KeyFromSeed(ballots.Ed25519, append(make([]byte, 31), byte(i+1)))
		if err != nil {
			t.Fatal(err)
		}
		x.keys = append(x.keys, key)
	}
	for n, e := range w.epochs {
		var shares []quorum.Share
		var keys []ballots.PublicKey
		for i, weight := range append(e.honest[:len(e.honest):len(e.honest)], e.liars) {
			if weight > 0 {
				shares = append(shares, quorum.Share{Anchor: x.keys[i].Public().ID(), Weight: weight})
				keys = append(keys, x.keys[i].Public())
			}
		}
		weights, err := quorum.NewWeights(shares...)
		if err != nil {
			t.Fatal(err)
		}
		ring, err := ballots.NewKeyring(ballots.Domain{Epoch: aweigh.Epoch(n)}, rules, weights, keys...)
		if err != nil {
			t.Fatal(err)
		}
		x.rings = append(x.rings, ring)
		x.seeds = append(x.seeds, aweigh.Sum(fmt.Append(nil, seed, n)))
	}
	for i := range w.honest {
		l := &life{i: i, now: start}
		x.lives = append(x.lives, l)
		x.begin(l, 0, root)
	}
	return x
}

// overall and within turn the views of an epoch into those of the model, and back.
func (x *living) overall(epoch int, v aweigh.View) int {
	return x.world.epochs[epoch].from - 1 + int(v)
}
func (x *living) within(v int) aweigh.View {
	return aweigh.View(v - x.world.epochs[x.world.of(v)].from + 1)
}

// begin starts an epoch from a block (P25).
func (x *living) begin(l *life, epoch int, from block) {
	if l.guard != nil {
		l.write(l.guard.Forget())
		x.did["begun"]++
	}
	l.epoch, l.begun, l.finals = epoch, append(l.begun, len(l.disk)), nil
	l.listens, l.since, l.held, l.grounds = l.again, 0, nil, make(map[aweigh.View][]quorum.Vote)
	if epoch > 0 && !l.listens {
		a := &x.state.anchors[l.i]
		*a = a.closed(x.world.epochs[epoch].from)
	}
	x.start(l, from)
}

// start gives an anchor a new engine, which goes on from the record.
func (x *living) start(l *life, from block) {
	disk := kv.NewOverlay(blank{})
	disk.Apply(l.disk...)
	var err error
	if l.guard, err = ballots.OpenGuard(x.keys[l.i], x.rings[l.epoch].Domain(), disk); err != nil {
		x.t.Fatal(err)
	}
	ring := x.rings[l.epoch]
	l.engine = quorum.NewEngine(quorum.Config{
		Self: x.keys[l.i].Public().ID(), Weights: ring.Weights(), Rules: x.rules,
		Seed: x.seeds[l.epoch], Root: hashOf(from),
	})
	var under []quorum.Certificate
	for _, c := range l.proofs {
		for _, v := range l.guard.Record() {
			if v.Kind == quorum.Finalize && v.View == c.Subject.View && v.Block == c.Subject.Block {
				under = append(under, c)
			}
		}
	}
	l.proofs = under
	if n := len(l.finals); n > 0 {
		under = append(under[:len(under):len(under)], l.finals[n-1].c)
	}
	record := l.guard.Record()
	for v := aweigh.View(1); int(v) <= x.world.views; v++ {
		record = append(record, l.grounds[v]...)
	}
	l.engine.Restore(record, under)
	if l.i != 0 && x.world.forgets { // what the others hold is an assumption of the model
		for _, b := range x.cast {
			if b.Anchor == x.keys[0].Public().ID() {
				x.hear(l, b)
			}
		}
	}
}

// blank is an empty store.
type blank struct{}

func (blank) Get([]byte) ([]byte, bool, error)                               { return nil, false, nil }
func (blank) Scan(_, _ []byte, _ bool, _ func(key, value []byte) bool) error { return nil }

func (l *life) write(ops []kv.Op) { l.disk = append(l.disk, ops...) }

// step gives an engine inputs, and does what it asks for.
func (x *living) step(l *life, in ...quorum.Input) {
	in = append(in, quorum.Work(true))
	for n := 0; len(in) > 0; n++ {
		if n > 100 {
			x.t.Fatalf("%v: the engine of anchor %d never rests", x.state, l.i)
		}
		engine := l.engine
		out := engine.Step(l.now, in...)
		in = nil
		for _, c := range out.Certified {
			if c.Subject.Kind == quorum.Notarize {
				l.proofs = append(l.proofs, c)
			}
		}
		for _, g := range out.Grounds {
			l.grounds[g.View] = g.Votes
		}
		x.did["passed over"] += len(out.Passed)
		for _, s := range out.Sign {
			if v, ok := x.sign(l, s); ok {
				in = append(in, v)
			}
		}
		if out.Build != nil {
			in = append(in, x.build(l, out.Build)...)
		}
		for _, p := range out.Check {
			in = append(in, quorum.Verdict{View: p.Vote.View, Block: p.Vote.Block, Valid: x.rnd.Intn(10) > 0})
		}
		for _, c := range out.Final {
			x.final(l, c)
		}
		if l.engine != engine {
			return
		}
		known := x.world.certs(&x.state)
		if v := x.overall(l.epoch, engine.View()); v <= x.world.epochs[l.epoch].to && !x.world.entered(&x.state, &known, v) {
			x.t.Fatalf("%v: anchor %d is in view %d, which the model has not begun", x.state, l.i, v)
		}
	}
}

// sign has the guard sign, and holds what it signed against the model.
func (x *living) sign(l *life, s quorum.Subject) (v quorum.Vote, ok bool) {
	at := x.overall(l.epoch, s.View)
	if at > x.world.epochs[l.epoch].to {
		return v, false // beyond what the model looks at
	}
	if l.listens {
		l.held = append(l.held, s)
		return v, false
	}
	if s.View < l.since && !(s.Kind == quorum.Nullify && x.world.oneRound && s.View > l.engine.Final()) {
		return v, false
	}
	b, ops, err := l.guard.Sign(s)
	if errors.Is(err, ballots.ErrLostState) {
		return v, false
	}
	if err != nil {
		x.t.Fatalf("%v: anchor %d: the engine asks for %v in view %d, which the guard refuses: %v",
			x.state, l.i, s.Kind, at, err)
	}
	l.write(ops)
	if len(ops) > 0 {
		x.follow(l, at, s)
		x.cast = append(x.cast, b)
		if l.i == 0 && x.world.forgets {
			for _, o := range x.lives[1:] {
				x.hear(o, b)
			}
		}
	}
	return b.Vote(), true
}

// follow takes the step of the model that a vote is.
func (x *living) follow(l *life, at int, s quorum.Subject) {
	var bit votes
	b := blockOf(s.Block)
	switch s.Kind {
	case quorum.Notarize:
		bit = votes(0).notarize(b)
	case quorum.Finalize:
		bit = votes(0).finalize(b)
	default:
		if bit = votes(0).nullify(at); b != 0 {
			bit = votes(0).name(b)
		}
	}
	before := x.state.anchors[l.i]
	known, found := x.world.certs(&x.state), false
	x.world.votes(x.state, &known, l.i, l.epoch, func(t state) {
		a := t.anchors[l.i]
		planned := s.Kind != x.rules.Mode.Vouch() || t.parents[b] == x.plans[b]
		if !found && planned && a.record == before.record|bit && a.votes == before.votes|bit {
			x.state, found = t, true
		}
	})
	if !found {
		x.t.Fatalf("%v: anchor %d signs %v of block %d on %d in view %d, which the model forbids",
			x.state, l.i, s.Kind, b, x.plans[b], at)
	}
	x.did[s.Kind.String()]++
	if parent := x.state.parents[b]; s.Kind == quorum.Notarize && known.carried[parent] && !known.notarized[parent] {
		x.did["stands on ballots"]++
	}
	x.shown()
	if before.since > 0 {
		x.did["signed after listening"]++
	}
}

// shown takes the steps of the model by which a liar of mode fast proposes blocks that no anchor has voted for.
func (x *living) shown() {
	for b := block(2); x.world.fast && b <= block(2*x.world.views+1); b++ {
		known := x.world.certs(&x.state)
		if x.state.parents[b] != 0 || x.plans[b] == 0 || x.leads(b.view()) != x.liar() {
			continue
		}
		x.world.madeUp(x.state, &known, func(t state) {
			if t.parents[b] == x.plans[b] {
				x.state = t
			}
		})
	}
}

// build proposes a block.
func (x *living) build(l *life, slot *quorum.Slot) []quorum.Input {
	v := x.overall(l.epoch, slot.View)
	if v > x.world.epochs[l.epoch].to || l.listens {
		return nil
	}
	b := block(2 * v)
	if x.plans[b] != 0 {
		b++ // it built before, and forgot
	}
	if x.plans[b] != 0 || b%2 == 1 && x.state.parents[b-1] == 0 {
		return nil
	}
	x.plans[b] = blockOf(slot.Parent)
	vote, ok := x.sign(l, quorum.Subject{Kind: x.rules.Mode.Vouch(), View: slot.View, Block: hashOf(b)})
	if !ok {
		x.plans[b] = 0
		return nil
	}
	return []quorum.Input{quorum.Proposal{Vote: vote, Parent: slot.Parent}}
}

// final closes what is below a final block, or begins the next epoch.
func (x *living) final(l *life, c quorum.Certificate) {
	b := blockOf(c.Subject.Block)
	if known := x.world.certs(&x.state); !known.finalized[b] {
		x.t.Fatalf("%v: block %d is final for anchor %d, and not in the model", x.state, b, l.i)
	}
	if l.epoch < len(x.world.epochs)-1 {
		for !x.world.ends(&x.state, b) {
			b = x.state.parents[b]
			x.did["waited above the end"]++
		}
		x.begin(l, l.epoch+1, b)
		return
	}
	l.write(l.guard.Prune(c.Subject.View))
	l.finals = append(l.finals, written{len(l.disk), c})
	if !l.listens {
		a := &x.state.anchors[l.i]
		*a = a.closed(b.view())
		x.did["closed"]++
	}
}

// hear gives an anchor a ballot, if its domain admits it.
func (x *living) hear(l *life, b ballots.Ballot) {
	ring := x.rings[l.epoch]
	if b.Domain.Epoch != ring.Domain().Epoch {
		if _, err := ring.Check(b); err == nil {
			x.t.Fatalf("a ballot of epoch %d is taken in epoch %d", b.Domain.Epoch, l.epoch)
		}
		x.did["refused"]++
		return
	}
	x.witness(l, b)
	x.step(l, b.Vote())
}

// witness looks for an anchor's own vote that it forgot.
func (x *living) witness(l *life, b ballots.Ballot) {
	if b.Anchor != x.keys[l.i].Public().ID() || l.guard.Knows(b.Subject) {
		return
	}
	c, err := x.rings[l.epoch].Check(b)
	if err != nil {
		x.t.Fatal(err)
	}
	if ops, lost := l.guard.Witness(c); lost && len(ops) > 0 {
		l.write(ops)
		x.did["lost"]++
	}
}

// liars is the number of the liar among the keys.
func (x *living) liar() int { return x.world.honest }

// leads is the number of the anchor that leads a view.
func (x *living) leads(v int) int {
	e := x.world.of(v)
	id := quorum.Leader(x.rings[e].Weights(), x.seeds[e], x.within(v))
	for i, key := range x.keys {
		if key.Public().ID() == id {
			return i
		}
	}
	return -1
}

// lie is a ballot of the liar.
func (x *living) lie(epoch int, s quorum.Subject) ballots.Ballot {
	key := x.keys[x.liar()]
	b := ballots.Ballot{Format: ballots.Format, Domain: x.rings[epoch].Domain(), Subject: s, Anchor: key.Public().ID()}
	b.Signature = key.Sign(ballots.ContextBallot, b.SigningBytes())
	return b
}

// subject is any that somebody may have voted for.
func (x *living) subject() (epoch int, s quorum.Subject, ok bool) {
	v := 1 + x.rnd.Intn(x.world.views)
	s = quorum.Subject{Kind: quorum.Kind(1 + x.rnd.Intn(3)), View: x.within(v)}
	if s.Kind == quorum.Nullify && x.world.fast {
		s = ballotOf(int(s.View), 0)
	}
	if s.Kind != quorum.Nullify || x.world.fast && x.rnd.Intn(3) > 0 {
		b := block(2*v + x.rnd.Intn(2))
		if s.Block = hashOf(b); x.plans[b] == 0 {
			return 0, s, false
		}
	}
	return x.world.of(v), s, true
}

// vote gives an anchor any vote that was cast, or that the liar casts.
func (x *living) vote(l *life) {
	if n := x.rnd.Intn(len(x.cast) + 3); n < len(x.cast) {
		x.hear(l, x.cast[n])
	} else if epoch, s, ok := x.subject(); ok && x.world.epochs[epoch].liars > 0 {
		x.hear(l, x.lie(epoch, s))
	}
}

// certificate gives an anchor one, if there are votes enough for it.
func (x *living) certificate(l *life) {
	epoch, s, ok := x.subject()
	if !ok || s.Kind == quorum.Nullify && x.world.fast {
		return
	}
	c := quorum.Certificate{Subject: s}
	weights, weight := x.rings[epoch].Weights(), uint64(0)
	for seat := range weights.Len() {
		id := weights.At(seat).Anchor
		b := ballots.Ballot{}
		for _, old := range x.cast {
			if old.Anchor == id && old.Subject == s && int(old.Domain.Epoch) == epoch {
				b = old
			}
		}
		if id == x.keys[x.liar()].Public().ID() {
			b = x.lie(epoch, s)
		}
		if b.Format != 0 && (!x.world.fast || x.rnd.Intn(6) > 0) {
			c.Signatures = append(c.Signatures, b.Vote().Signature)
			weight += weights.At(seat).Weight
		}
	}
	if !x.rules.For(s.Kind).Met(weight, weights.Total(), len(c.Signatures)) {
		return
	}
	x.certified(l, epoch, c)
}

// certified gives an anchor a certificate, if its domain admits it.
func (x *living) certified(l *life, epoch int, c quorum.Certificate) {
	if err := x.rings[epoch].Certificate(c).Check(x.rings[l.epoch]); (err == nil) != (epoch == l.epoch) {
		x.t.Fatalf("a certificate of epoch %d in epoch %d: %v", epoch, l.epoch, err)
	} else if err != nil {
		x.did["refused"]++
		return
	}
	for _, s := range c.Signatures {
		if s.Anchor == x.keys[l.i].Public().ID() {
			x.witness(l, x.rings[l.epoch].Ballot(quorum.Vote{Subject: c.Subject, Signature: s}))
		}
	}
	x.step(l, c)
}

// proposal gives an anchor one of its epoch: of an honest leader, or of the liar on any parent.
func (x *living) proposal(l *life) {
	e := x.world.epochs[l.epoch]
	v := e.from + x.rnd.Intn(e.to-e.from+1)
	b, leader := block(2*v+x.rnd.Intn(2)), x.leads(v)
	s := quorum.Subject{Kind: x.rules.Mode.Vouch(), View: x.within(v), Block: hashOf(b)}
	if leader == x.liar() {
		if b%2 == 1 && x.state.parents[b-1] == 0 {
			return
		}
		if parent := block(1 + x.rnd.Intn(2*v-1)); x.plans[b] == 0 && (parent == root || x.state.parents[parent] != 0) {
			x.plans[b] = parent
			x.shown()
		}
		if x.plans[b] != 0 {
			x.step(l, quorum.Proposal{Vote: x.lie(l.epoch, s).Vote(), Parent: hashOf(x.plans[b])})
		}
		return
	}
	for _, old := range x.cast {
		if old.Anchor == x.keys[leader].Public().ID() && old.Subject == s && int(old.Domain.Epoch) == l.epoch {
			x.step(l, quorum.Proposal{Vote: old.Vote(), Parent: hashOf(x.plans[b])})
			return
		}
	}
}

// restart starts an anchor again from its record.
func (x *living) restart(l *life) {
	x.did["restarts"]++
	x.start(l, x.rootOf(l.epoch))
	x.step(l)
}

// rootOf is the block from which an epoch began.
func (x *living) rootOf(epoch int) block {
	known := x.world.certs(&x.state)
	for b := root; b <= block(2*x.world.views+1); b++ {
		if x.world.begins(&x.state, &known, epoch, b) {
			return b
		}
	}
	x.t.Fatalf("epoch %d has not begun", epoch)
	return 0
}

// forget starts an anchor from what was on its disk at some time before.
func (x *living) forget(l *life) {
	x.did["forgot"]++
	keep := x.rnd.Intn(len(l.disk) + 1)
	l.disk = l.disk[:keep:keep]
	for l.epoch > 0 && l.begun[l.epoch] > keep {
		l.epoch--
	}
	l.begun = l.begun[:l.epoch+1]
	for len(l.finals) > 0 && l.finals[len(l.finals)-1].at > keep {
		l.finals = l.finals[:len(l.finals)-1]
	}
	l.listens, l.again, l.since, l.held = true, true, 0, nil
	x.start(l, x.rootOf(l.epoch))
	x.step(l)
}

// offered gives an anchor what another of its epoch holds, and all votes of its own that that one knows.
func (x *living) offered(l, from *life, epoch int) {
	hold := from.engine.Holdings()
	for _, c := range hold.Certificates {
		if l.epoch == epoch {
			x.certified(l, epoch, c)
		}
	}
	for _, v := range append(hold.Votes, from.engine.Cast(x.keys[l.i].Public().ID())...) {
		if l.epoch == epoch {
			x.hear(l, x.rings[epoch].Ballot(v))
		}
	}
}

// listen lets an anchor hear what some others hold, and sign from then on if they are enough (P9).
func (x *living) listen(l *life) {
	e := x.world.epochs[l.epoch]
	weight := e.honest[l.i] + e.liars
	var others []*life
	var numbers uint
	for _, o := range x.lives {
		switch {
		case o == l || o.epoch < l.epoch || x.rnd.Intn(3) == 0:
		case o.epoch > l.epoch: // it holds the end of this epoch
			x.begin(l, l.epoch+1, x.rootOf(l.epoch+1))
			return
		default:
			others = append(others, o)
			numbers |= 1 << o.i
			weight += e.honest[o.i]
		}
	}
	if weight < e.notarize || weight < e.finalize {
		return
	}
	epoch := l.epoch
	for _, o := range others {
		x.offered(l, o, epoch)
	}
	if l.epoch != epoch {
		return
	}
	l.listens, l.since = false, l.engine.View()
	if epoch > 0 {
		l.again = false
	}
	held := l.held
	l.held = nil
	if l.guard.Lost() {
		x.did["silent"]++
		return
	}
	x.listened(l, numbers)
	for _, s := range held {
		if v, ok := x.sign(l, s); ok {
			x.step(l, v)
		}
	}
}

// listened takes the step of the model by which an anchor that listened to others may sign.
func (x *living) listened(l *life, others uint) {
	e := x.world.epochs[l.epoch]
	now := anchor{votes: x.state.anchors[l.i].votes, floor: uint8(e.from)}
	now.since = uint8(min(x.overall(l.epoch, l.since), e.to))
	if f := l.engine.Final(); f > 0 {
		now.floor = uint8(x.overall(l.epoch, f))
	}
	for _, v := range l.guard.Record() {
		switch b := blockOf(v.Block); v.Kind {
		case quorum.Notarize:
			now.record = now.record.notarize(b)
		case quorum.Finalize:
			now.record = now.record.finalize(b)
		default:
			now.record = now.record.nullify(x.overall(l.epoch, v.View))
		}
	}
	least := int(now.since)
	if x.world.oneRound {
		least = int(now.floor)
	}
	heard, _, _, _ := x.world.heard(&x.state, l.epoch, others)
	found := max(heard, now.position(&x.world, l.epoch)) > e.to // it signs nothing that the model looks at
	x.world.listen(x.state, l.epoch, others, func(t state) {
		a := t.anchors[0]
		found = found || a.since <= now.since && a.floor <= now.floor && a.record.from(least) == now.record.from(least)
	})
	if !found {
		x.t.Fatalf("%v: anchor %d listened, and signs from view %d on with %b on record, which the model forbids",
			x.state, l.i, now.since, now.record)
	}
	now.record = now.record.from(int(now.floor))
	x.state.anchors[l.i] = now
	x.did["listened"]++
}

// act does one thing at random.
func (x *living) act() {
	l := x.lives[x.rnd.Intn(len(x.lives))]
	switch n := x.rnd.Intn(100); {
	case n < 25:
		x.vote(l)
	case n < 40:
		x.certificate(l)
	case n < 65:
		x.proposal(l)
	case n < 80:
		if o := x.lives[x.rnd.Intn(len(x.lives))]; o != l && o.epoch == l.epoch {
			x.offered(l, o, l.epoch)
		}
	case n < 94:
		l.now = l.now.Add(time.Duration(x.rnd.Intn(500)) * time.Millisecond)
		x.step(l)
	case n < 96 && !l.listens:
		x.restart(l)
	case n < 97 && x.world.forgets:
		x.forget(x.lives[0])
	case x.lives[0].listens:
		x.listen(x.lives[0])
	}
}

// TestEnginesLiveInTheModel walks through worlds with engines that live as long as a trace: whatever they sign, close,
// forget and begin is a step of the model.
func TestEnginesLiveInTheModel(t *testing.T) {
	four := []uint64{1, 1, 1, 1}
	for _, c := range []struct {
		name  string
		rules quorum.Rules
		world world
		want  []string
	}{
		{"bft, four alike, one lies", bft, closing(newWorld(bft, alike, 1, 4)), []string{"notarize", "closed"}},
		{"bft, four alike, none lies", bft, closing(newWorld(bft, four, 0, 4)), []string{"notarize", "closed"}},
		{"crash, three alike", crash, closing(newWorld(crash, alike, 0, 4)), []string{"closed"}},
		{"fast, four alike, one lies", fast, closing(newFast(alike, []uint64{1}, 4)), []string{"notarize", "closed", "passed over", "stands on ballots"}},
		{"fast, four alike, none lies", fast, closing(newFast(four, nil, 4)), []string{"notarize", "closed", "passed over", "stands on ballots"}},
		{"fast, 4 3 2 1, the 3 lies", fast, closing(newFast([]uint64{4, 2, 1}, []uint64{3}, 4)),
			[]string{"notarize", "finalize", "closed", "passed over"}},
		{"fast, two epochs", fast, closing(newWorld(fast, alike, 1, 2).then(fast, []uint64{1, 2, 1}, 1, 2)),
			[]string{"begun", "refused", "closed", "passed over", "stands on ballots"}},
		{"bft, one lies, one forgets", bft, closing(forgetful(newWorld(bft, alike, 1, 4))),
			[]string{"lost", "silent", "listened", "signed after listening"}},
		{"crash, one forgets", crash, closing(forgetful(newWorld(crash, alike, 0, 4))),
			[]string{"lost", "silent", "listened", "signed after listening"}},
		{"bft, 3 2 1 1, then 1 2 1 1", bft, closing(newWorld(bft, []uint64{3, 2, 1}, 1, 2).then(bft, []uint64{1, 2, 1}, 1, 2)),
			[]string{"begun", "refused", "waited above the end", "closed"}},
		{"crash, two epochs", crash, closing(newWorld(crash, alike, 0, 2).then(crash, []uint64{2, 1, 1}, 0, 2)),
			[]string{"begun", "refused", "waited above the end", "closed"}},
		{"bft, two epochs, one lies, one forgets", bft, closing(forgetful(newWorld(bft, alike, 1, 2).then(bft, alike, 1, 2))),
			[]string{"begun", "listened", "signed after listening"}},
		{"crash, two epochs, one forgets", crash, closing(forgetful(newWorld(crash, alike, 0, 2).then(crash, alike, 0, 2))),
			[]string{"begun", "listened", "signed after listening"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			traces, did := testshort.Cases(10, 40, 200), make(map[string]int)
			if os.Getenv("AWEIGH_MODEL") == "large" {
				traces = 10_000
			}
			for seed := range traces {
				x := newLiving(t, c.rules, c.world, seed)
				for range 300 {
					x.act()
				}
				for k, n := range x.did { // order-free: sums
					did[k] += n
				}
			}
			t.Logf("%d traces: %v", traces, did)
			if c.rules.Mode != quorum.Fast { // where four are alike, each notarization decides
				c.want = append(c.want, "finalize")
			}
			if testing.Short() { // these are few
				c.want = slices.DeleteFunc(c.want, func(k string) bool { return k == "stands on ballots" })
			}
			for _, k := range append(c.want, "nullify", "restarts") {
				if did[k] == 0 {
					t.Errorf("the traces never reached what they are meant to reach: %s", k)
				}
			}
		})
	}
}
