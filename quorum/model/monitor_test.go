package model

import (
	"math/rand"
	"os"
	"testing"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/quorum/monitor"
)

// monitored is a walk through a world of the model that monitors follow.
type monitored struct {
	t      *testing.T
	rnd    *rand.Rand
	rules  quorum.Rules
	world  world
	state  state
	epochs []*monitor.Epoch
	looks  map[bool]int // by what the model says
}

// name is the block's in monitors: two blocks on different parents are two.
func (x *monitored) name(b, parent block) aweigh.Hash {
	if b == root {
		parent = 0
	}
	return aweigh.Hash{byte(b), byte(parent)}
}

func (x *monitored) known(b block) aweigh.Hash { return x.name(b, x.state.parents[b]) }

// follow begins an epoch once the model does, and proposes to it all that can be.
func (x *monitored) follow() {
	c := x.world.certs(&x.state)
	if at := len(x.epochs); at < len(x.world.epochs) {
		for b := root; b <= block(2*x.world.views+1); b++ {
			if len(x.epochs) == at && x.world.begins(&x.state, &c, at, b) {
				x.begin(at, b)
			}
		}
	}
	for b := block(2); b <= block(2*x.world.views+1); b++ {
		e := x.world.of(b.view())
		for parent := root; parent < block(2*b.view()) && e < len(x.epochs); parent++ {
			if parent == root || x.state.parents[parent] != 0 {
				x.epochs[e].Propose(x.name(b, parent), x.known(parent), aweigh.View(b.view()-x.world.epochs[e].from+1))
			}
		}
	}
}

func (x *monitored) begin(at int, from block) {
	e := x.world.epochs[at]
	var shares []quorum.Share
	for i, weight := range append(e.honest[:len(e.honest):len(e.honest)], e.liars) {
		if weight > 0 {
			shares = append(shares, quorum.Share{Anchor: name(i), Weight: weight})
		}
	}
	weights, err := quorum.NewWeights(shares...)
	if err != nil {
		x.t.Fatal(err)
	}
	c := monitor.Config{
		Weights: weights, Rules: x.rules, Root: x.known(from),
		Lies: func(a aweigh.AnchorID) bool { return a == name(x.world.honest) },
	}
	if at > 0 {
		c.Before = x.epochs[at-1]
	}
	m := monitor.New(c)
	for i := range x.world.honest {
		if x.state.anchors[i].since > 0 { // it listens in this epoch as well
			m.Listen(name(i))
		}
	}
	x.epochs = append(x.epochs, m)
}

// subject is the vote of the model in the terms of its epoch.
func (x *monitored) subject(k quorum.Kind, v int, hash aweigh.Hash) quorum.Subject {
	return quorum.Subject{Kind: k, View: aweigh.View(v - x.world.epochs[x.world.of(v)].from + 1), Block: hash}
}

// bit is the vote of an anchor in the terms of the model.
func (x *monitored) bit(i int, k quorum.Kind, v int, b block) votes {
	switch k {
	case quorum.Notarize:
		return votes(0).notarize(b)
	case quorum.Finalize:
		return votes(0).finalize(b)
	}
	return x.world.ballot(x.state.anchors[i].votes, v)
}

// gaveUp is what an anchor's ballot to nullify a view names.
func (x *monitored) gaveUp(i, v int) aweigh.Hash {
	switch b := x.state.anchors[i].votes.notarized(v); {
	case !x.world.fast:
		return aweigh.Hash{}
	case b != 0:
		return x.known(b)
	}
	return quorum.NoBlock
}

// step compares what an anchor may vote next, by the model and by the monitors, and gives the states that follow.
func (x *monitored) step(i int) (next []func()) {
	c := x.world.certs(&x.state)
	for e := range x.world.epochs {
		may := make(map[move]state)
		x.world.votes(x.state, &c, i, e, func(t state) {
			for v := x.world.epochs[e].from; v <= x.world.epochs[e].to; v++ {
				for _, k := range []quorum.Kind{quorum.Notarize, quorum.Nullify, quorum.Finalize} {
					for b := block(2 * v); b <= block(2*v+1); b++ {
						now := t.anchors[i].votes &^ x.state.anchors[i].votes
						if now == x.bit(i, k, v, b) && (k != quorum.Nullify || b == block(2*v)) {
							may[move{subject(k, v, b), t.parents[b]}] = t
						}
					}
				}
			}
		})
		for v := x.world.epochs[e].from; v <= x.world.epochs[e].to; v++ {
			next = append(next, x.compare(i, e, v, may)...)
		}
	}
	return next
}

// compare compares the votes of one view.
func (x *monitored) compare(i, e, v int, may map[move]state) (next []func()) {
	look := func(k quorum.Kind, b, parent block, s quorum.Subject) {
		if x.state.anchors[i].votes&x.bit(i, k, v, b) != 0 {
			return // cast before
		}
		m := move{subject(k, v, b), parent}
		if k == quorum.Nullify {
			m.parent = x.state.parents[block(2*v)]
		}
		t, allowed := may[m]
		var err error
		if e < len(x.epochs) {
			err = x.epochs[e].May(name(i), s)
		}
		if allowed != (err == nil && e < len(x.epochs)) {
			x.t.Fatalf("%v: anchor %d, %v on %d: the model allows it: %v; the monitor: %v", x.state, i, m.subject, m.parent, allowed, err)
		}
		if x.looks[allowed]++; allowed {
			next = append(next, func() {
				if err := x.epochs[e].Vote(name(i), s); err != nil {
					x.t.Fatal(err)
				}
				for _, old := range x.epochs[:e] {
					old.Leave(name(i))
				}
				x.state = t
			})
		}
	}
	look(quorum.Nullify, block(2*v), 0, x.subject(quorum.Nullify, v, x.gaveUp(i, v)))
	for b := block(2 * v); b <= block(2*v+1); b++ {
		if b%2 == 1 && (x.state.parents[b-1] == 0 || x.world.once(v)) {
			continue // the model names the first one first, and one leader that does not lie proposes once
		}
		for parent := root; parent < block(2*v); parent++ {
			proposed := x.state.parents[b]
			if proposed != 0 && proposed != parent || parent != root && x.state.parents[parent] == 0 {
				continue
			}
			if !x.world.oneRound {
				look(quorum.Notarize, b, parent, x.subject(quorum.Notarize, v, x.name(b, parent)))
			}
			if x.world.oneRound || proposed != 0 {
				look(quorum.Finalize, b, parent, x.subject(quorum.Finalize, v, x.name(b, parent)))
			}
		}
	}
	return next
}

// closes gives the states in which an anchor closed views.
func (x *monitored) closes(i int) (next []func()) {
	if !x.world.closes {
		return nil
	}
	c := x.world.certs(&x.state)
	x.world.close(x.state, &c, i, func(t state) {
		next = append(next, func() {
			floor := int(t.anchors[i].floor)
			for e, m := range x.epochs {
				if from := x.world.epochs[e].from; floor > x.world.epochs[e].to {
					m.Leave(name(i))
				} else if floor >= from {
					m.Close(name(i), aweigh.View(floor-from+1))
				}
			}
			x.state = t
		})
	})
	return next
}

// listens gives the states in which the first anchor restarted with all of its record, and listened.
func (x *monitored) listens() (next []func()) {
	if !x.world.forgets {
		return nil
	}
	for e := range x.epochs {
		from, others := x.world.epochs[e].from, uint(x.rnd.Intn(1<<x.world.honest))&^1
		if x.world.epochs[e].honest[0] == 0 || int(x.state.anchors[0].floor) > x.world.epochs[e].to {
			continue
		}
		x.world.listen(x.state, e, others, func(t state) {
			a := t.anchors[0]
			if x.state.anchors[0].record.from(int(max(a.since, a.floor)))&^a.record != 0 {
				return // it forgot
			}
			next = append(next, func() {
				m := x.epochs[e]
				m.Restart(name(0))
				m.Close(name(0), aweigh.View(int(a.floor)-from+1))
				heard := func(id aweigh.AnchorID) bool {
					i := int(id[0]) - 1
					return i >= x.world.honest || others>>i&1 == 1
				}
				if !m.Listened(name(0), aweigh.View(int(a.since)-from+1), heard) {
					x.t.Fatalf("%v: anchor 0 listened to %b, which is a quorum in the model alone", x.state, others)
				}
				for _, old := range x.epochs[:e] {
					old.Leave(name(0))
				}
				for _, later := range x.epochs[e+1:] {
					later.Listen(name(0))
				}
				x.state = t
			})
		})
	}
	return next
}

// TestMonitorsFollowTheModel: in random walks through the model, a monitor accepts those votes that the model allows,
// and no others.
func TestMonitorsFollowTheModel(t *testing.T) {
	for _, c := range []struct {
		name  string
		rules quorum.Rules
		world world
	}{
		{"bft, four alike, one lies", bft, closing(newWorld(bft, alike, 1, 4))},
		{"bft, 4 3 2 1, the 3 lies", bft, closing(newWorld(bft, []uint64{4, 2, 1}, 3, 4))},
		{"bft, one starts again", bft, closing(forgetful(newWorld(bft, alike, 1, 4)))},
		{"fast, four alike, one lies", fast, closing(attending(newFast(alike, []uint64{1}, 4)))},
		{"fast, four alike, none lies", fast, closing(attending(newFast([]uint64{1, 1, 1, 1}, nil, 4)))},
		{"fast, 4 3 2 1, the 3 lies", fast, closing(attending(newFast([]uint64{4, 2, 1}, []uint64{3}, 4)))},
		{"fast, one starts again", fast, closing(attending(forgetful(newFast(alike, []uint64{1}, 4))))},
		{"crash, three alike", crash, closing(attending(newWorld(crash, alike, 0, 4)))},
		{"crash, one starts again", crash, closing(attending(forgetful(newWorld(crash, alike, 0, 4))))},
		{"bft, 3 2 1 1, then 1 2 1 1", bft, closing(newWorld(bft, []uint64{3, 2, 1}, 1, 2).then(bft, []uint64{1, 2, 1}, 1, 2))},
		{"crash, two epochs, one starts again", crash, closing(attending(forgetful(newWorld(crash, alike, 0, 2).then(crash, alike, 0, 2))))},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			walks, looks := 300, map[bool]int{}
			if os.Getenv("AWEIGH_MODEL") == "large" {
				walks = 10_000
			}
			c.world.named = true
			for seed := range walks {
				x := &monitored{t: t, rnd: rand.New(rand.NewSource(int64(seed))), rules: c.rules, world: c.world, looks: looks}
				for range 60 {
					x.follow()
					var next []func()
					for i := range c.world.honest {
						next = append(next, x.step(i)...)
						if x.rnd.Intn(8) == 0 {
							next = append(next, x.closes(i)...)
						}
					}
					if x.rnd.Intn(8) == 0 {
						next = append(next, x.listens()...)
					}
					if len(next) == 0 {
						break
					}
					next[x.rnd.Intn(len(next))]()
				}
			}
			t.Logf("%d walks: %d votes that the model allows, %d that it forbids", walks, looks[true], looks[false])
			if looks[true] == 0 || looks[false] == 0 {
				t.Error("the walks never reached what they are meant to reach")
			}
		})
	}
}
