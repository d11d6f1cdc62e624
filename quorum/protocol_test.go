package quorum_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/quorum"
)

// The tests of this file hold one numbered sentence of docs/protocol.md each.
// P1 to P4 and P10 stand beside the arithmetic, P5 to P9 with package votes
// where they concern signatures.

// four is a network of four equal anchors that lead the views 1, 4, 1, 3, 2, 3.
func four(t *testing.T) *network {
	n := newNetwork(quorum.Config{
		Weights: weigh(t, 1, 1, 1, 1), Rules: quorum.DefaultRules(quorum.BFT),
		Seed: aweigh.Sum(nil), Root: aweigh.Sum([]byte("root")),
	})
	n.broken = t.Fatalf
	return n
}

// lone is the engine of one of the four, with the others' inputs.
type lone struct {
	*network
	engine *quorum.Engine
	now    aweigh.Instant
}

func newLone(t *testing.T, id int) *lone {
	n := four(t)
	return &lone{n, n.peer(id).engine, start}
}

func (l *lone) step(in ...quorum.Input) quorum.Output { return l.engine.Step(l.now, in...) }

// at is a subject; the block is that of a name.
func (l *lone) at(k quorum.Kind, v aweigh.View, name string, on aweigh.Hash) quorum.Subject {
	if k == quorum.Nullify {
		return quorum.Subject{Kind: k, View: v}
	}
	return quorum.Subject{Kind: k, View: v, Block: l.block(name, v, on, 0)}
}

func (l *lone) cert(k quorum.Kind, v aweigh.View, name string, on aweigh.Hash, by ...int) quorum.Certificate {
	c := quorum.Certificate{Subject: l.at(k, v, name, on)}
	for _, id := range by {
		c.Signatures = append(c.Signatures, l.sign(id, c.Subject).Signature)
	}
	return c
}

func (l *lone) proposal(from int, v aweigh.View, name string, on aweigh.Hash) quorum.Proposal {
	return quorum.Proposal{Vote: l.sign(from, l.at(quorum.Notarize, v, name, on)), Parent: on}
}

func verdict(p quorum.Proposal, ok bool) quorum.Verdict {
	return quorum.Verdict{View: p.Vote.View, Block: p.Vote.Block, Valid: ok}
}

// signs fails the test unless the output asks for exactly these kinds.
func signs(t *testing.T, why string, out quorum.Output, kinds ...quorum.Kind) {
	t.Helper()
	var got []quorum.Kind
	for _, s := range out.Sign {
		got = append(got, s.Kind)
	}
	if !slices.Equal(got, kinds) {
		t.Errorf("%s: signs %v, want %v", why, got, kinds)
	}
}

func TestP7NeverBothNullifyAndFinalize(t *testing.T) {
	l := newLone(t, 2)
	root := l.cfg.Root
	l.step(quorum.Work(true))
	l.now = l.now.Add(time.Second)
	signs(t, "the timer", l.step(), quorum.Nullify)
	signs(t, "a notarization after nullify", l.step(l.cert(quorum.Notarize, 1, "b1", root, 1, 3, 4)))

	l = newLone(t, 2)
	signs(t, "a notarization", l.step(quorum.Work(true), l.cert(quorum.Notarize, 1, "b1", root, 1, 3, 4)), quorum.Finalize)
	l.now = l.now.Add(time.Hour)
	for _, s := range l.step().Sign {
		if s.View == 1 {
			t.Errorf("after finalize, in the same view: %s", s)
		}
	}
}

func TestP7HoldsForVotesOnRecordAndVotesThatCameBack(t *testing.T) {
	for name, tell := range map[string]func(*lone, quorum.Vote){
		"restored":       func(l *lone, v quorum.Vote) { l.engine.Restore([]quorum.Vote{v}, nil) },
		"from a peer":    func(l *lone, v quorum.Vote) { l.step(v) },
		"before a stop":  func(l *lone, v quorum.Vote) { l.step(v); l.engine.Restore([]quorum.Vote{v}, nil) },
		"fed back twice": func(l *lone, v quorum.Vote) { l.step(v, v) },
	} {
		l := newLone(t, 2)
		tell(l, l.sign(2, l.at(quorum.Notarize, 1, "b1x", l.cfg.Root)))
		p := l.proposal(1, 1, "b1", l.cfg.Root)
		signs(t, name+": notarize after notarize", l.step(p, verdict(p, true)))

		l = newLone(t, 2)
		tell(l, l.sign(2, l.at(quorum.Nullify, 1, "", l.cfg.Root)))
		signs(t, name+": finalize after nullify", l.step(l.cert(quorum.Notarize, 1, "b1", l.cfg.Root, 1, 3, 4)))
	}
}

func TestP8AnAnchorGoesOnFromItsRecord(t *testing.T) {
	l := newLone(t, 2)
	root := l.cfg.Root
	l.engine.Restore(
		[]quorum.Vote{l.sign(2, l.at(quorum.Nullify, 3, "", root))},
		[]quorum.Certificate{l.cert(quorum.Nullify, 2, "", root, 1, 3, 4), l.cert(quorum.Notarize, 1, "b1", root, 1, 3, 4)})
	if l.engine.View() != 3 {
		t.Errorf("view %d, want that of the last vote, 3", l.engine.View())
	}
	// It stopped between the notarization and its own finalize vote.
	signs(t, "the first step", l.step(), quorum.Finalize)
	if got := l.engine.Pledge().Subject.View; got != 1 {
		t.Errorf("pledges view %d, want 1", got)
	}
}

func TestP8ALeaderDoesNotBuildTwice(t *testing.T) {
	l := newLone(t, 1)
	if l.step(quorum.Work(true)).Build == nil {
		t.Fatal("the leader of view 1 does not build")
	}
	again := quorum.NewEngine(l.config(l.peer(1)))
	again.Restore([]quorum.Vote{l.proposal(1, 1, "b1", l.cfg.Root).Vote}, nil)
	if again.Step(l.now, quorum.Work(true)).Build != nil {
		t.Error("builds again in a view for which it signed a proposal")
	}
	if o := again.Holdings(); o.Propose != 1 {
		t.Error("does not offer the proposal on record again")
	}
}

func TestP11ACertificateEndsTheView(t *testing.T) {
	for _, k := range []quorum.Kind{quorum.Notarize, quorum.Nullify, quorum.Finalize} {
		l := newLone(t, 2)
		c := l.cert(k, 1, "b1", l.cfg.Root, 1, 3, 4)
		out := l.step(c)
		if l.engine.View() != 2 || len(out.Certified) != 1 || out.Certified[0].Subject != c.Subject {
			t.Errorf("%s: view %d, passes on %v", k, l.engine.View(), out.Certified)
		}
		if again := l.step(c); len(again.Certified) != 0 {
			t.Errorf("%s: passed on again", k)
		}
	}
	l := newLone(t, 2)
	for _, id := range []int{1, 3} {
		l.step(l.sign(id, l.at(quorum.Nullify, 1, "", l.cfg.Root)))
	}
	if l.engine.View() != 1 {
		t.Error("two of four votes end a view")
	}
}

func TestP12ABlockNeedsItsParentNotarizedAndAllBetweenNullified(t *testing.T) {
	root := aweigh.Sum([]byte("root"))
	for _, c := range []struct {
		name  string
		certs func(l *lone, b1 aweigh.Hash) []quorum.Certificate
		on    string
		ok    bool
	}{
		{"on root, views 1 and 2 nullified", func(l *lone, b1 aweigh.Hash) []quorum.Certificate {
			return []quorum.Certificate{l.cert(quorum.Nullify, 1, "", root, 1, 3, 4), l.cert(quorum.Nullify, 2, "", root, 1, 3, 4)}
		}, "root", true},
		{"on root, view 1 not nullified", func(l *lone, b1 aweigh.Hash) []quorum.Certificate {
			return []quorum.Certificate{l.cert(quorum.Notarize, 1, "b1", root, 1, 3, 4), l.cert(quorum.Nullify, 2, "", root, 1, 3, 4)}
		}, "root", false},
		{"on b1, view 2 nullified", func(l *lone, b1 aweigh.Hash) []quorum.Certificate {
			return []quorum.Certificate{l.cert(quorum.Notarize, 1, "b1", root, 1, 3, 4), l.cert(quorum.Nullify, 2, "", root, 1, 3, 4)}
		}, "b1", true},
		{"on b1, which is not notarized", func(l *lone, b1 aweigh.Hash) []quorum.Certificate {
			return []quorum.Certificate{l.cert(quorum.Nullify, 1, "", root, 1, 3, 4), l.cert(quorum.Nullify, 2, "", root, 1, 3, 4)}
		}, "b1", false},
		{"on b1, view 2 gave b2", func(l *lone, b1 aweigh.Hash) []quorum.Certificate {
			return []quorum.Certificate{l.cert(quorum.Notarize, 1, "b1", root, 1, 3, 4), l.cert(quorum.Notarize, 2, "b2", b1, 1, 3, 4)}
		}, "b1", false},
		{"on b1, view 2 gave b2 and was nullified", func(l *lone, b1 aweigh.Hash) []quorum.Certificate {
			return []quorum.Certificate{l.cert(quorum.Notarize, 1, "b1", root, 1, 3, 4),
				l.cert(quorum.Notarize, 2, "b2", b1, 1, 3, 4), l.cert(quorum.Nullify, 2, "", root, 1, 3, 4)}
		}, "b1", true},
		{"on root, below a final block", func(l *lone, b1 aweigh.Hash) []quorum.Certificate {
			return []quorum.Certificate{l.cert(quorum.Nullify, 1, "", root, 1, 3, 4), l.cert(quorum.Finalize, 2, "b2", root, 1, 3, 4)}
		}, "root", false},
	} {
		for _, hint := range []aweigh.View{0, 1, 2, 9} { // the messenger's hint of the parent's view
			l := newLone(t, 2)
			b1 := l.block("b1", 1, root, 0)
			on := root
			if c.on == "b1" {
				on = b1
			}
			l.step(inputs(c.certs(l, b1))...)
			p := l.proposal(1, 3, "b3", on)
			p.ParentView = hint
			if got := len(l.step(p).Check) == 1; got != c.ok {
				t.Errorf("%s: taken for checking: %v", c.name, got)
			}
		}
	}
}

func TestP12TheLeaderShowsWhyItsParentMayBeOne(t *testing.T) {
	l := newLone(t, 1) // leads view 3
	root := l.cfg.Root
	out := l.step(quorum.Work(true), l.cert(quorum.Nullify, 2, "", root, 2, 3, 4))
	if out.Build != nil {
		t.Fatal("builds without knowing how view 1 ended")
	}
	n1 := l.cert(quorum.Notarize, 1, "b1", root, 2, 3, 4)
	s := l.step(n1).Build
	if s == nil || s.View != 3 || s.Parent != n1.Subject.Block || s.ParentView != 1 || len(s.Proof) != 2 ||
		s.Proof[0].Subject.Kind != quorum.Nullify || s.Proof[1].Subject != n1.Subject {
		t.Errorf("builds %+v", s)
	}
}

func TestP13NotarizeTheFirstValidProposalOfTheLeader(t *testing.T) {
	l := newLone(t, 2)
	root := l.cfg.Root
	if out := l.step(l.proposal(3, 1, "b1y", root)); len(out.Check) != 0 {
		t.Error("takes a proposal of one who does not lead")
	}
	p, q := l.proposal(1, 1, "b1", root), l.proposal(1, 1, "b1x", root)
	if out := l.step(p); len(out.Check) != 1 || len(out.Sign) != 0 {
		t.Errorf("the first: %+v", out)
	}
	if out := l.step(q); len(out.Check) != 0 || len(out.Faults) != 1 {
		t.Errorf("the second: %+v", out)
	}
	signs(t, "the second is valid", l.step(verdict(q, true)))
	signs(t, "the first is valid", l.step(verdict(p, true)), quorum.Notarize)
	signs(t, "once more", l.step(verdict(p, true)))

	l = newLone(t, 2)
	p = l.proposal(1, 1, "b1", root)
	signs(t, "not valid", l.step(p, verdict(p, false)), quorum.Nullify)

	l = newLone(t, 2)
	p = l.proposal(1, 1, "b1", root)
	l.step(p)
	l.now = l.now.Add(time.Second)
	signs(t, "late", l.step(), quorum.Nullify)
	signs(t, "valid, but nullified", l.step(verdict(p, true)))

	l = newLone(t, 2)
	p = l.proposal(1, 1, "b1", root)
	l.step(p, l.cert(quorum.Nullify, 1, "", root, 1, 3, 4))
	signs(t, "valid, but of a view that is over", l.step(verdict(p, true)))
}

func TestP14FinalizeWhatIsNotarized(t *testing.T) {
	l := newLone(t, 2)
	root := l.cfg.Root
	n2 := l.cert(quorum.Notarize, 2, "b2", root, 1, 3, 4)
	signs(t, "ahead of its view", l.step(n2), quorum.Finalize)
	signs(t, "of a view that it passed over", l.step(l.cert(quorum.Notarize, 1, "b1", root, 1, 3, 4)), quorum.Finalize)
	signs(t, "again", l.step(n2))

	// Its own vote is evidence of taking part even where others were faster.
	signs(t, "final already", l.step(l.cert(quorum.Finalize, 3, "b3", root, 1, 3, 4), l.cert(quorum.Notarize, 3, "b3", root, 1, 3, 4)), quorum.Finalize)
}

func TestP15TheTimerNullifiesWhatWasNotFinalized(t *testing.T) {
	l := newLone(t, 2)
	p := l.proposal(1, 1, "b1", l.cfg.Root)
	l.step(p, verdict(p, true))
	l.now = l.now.Add(time.Second - 1)
	signs(t, "a moment before", l.step())
	l.now++
	signs(t, "though it notarized", l.step(), quorum.Nullify)
	l.now = l.now.Add(time.Hour)
	signs(t, "only once", l.step())
}

func TestP15ALeaderOutOfReachIsNotWaitedFor(t *testing.T) {
	l := newLone(t, 2)
	leader := l.engine.Leader(1)
	signs(t, "an idle view needs no end", l.step(quorum.Link{Anchor: leader}))
	signs(t, "there is work, and nobody to lead", l.step(quorum.Work(true)), quorum.Nullify)

	l = newLone(t, 2)
	signs(t, "the leader may still propose", l.step(quorum.Work(true)))
	signs(t, "it is gone", l.step(quorum.Link{Anchor: leader}), quorum.Nullify)

	l = newLone(t, 2)
	l.step(quorum.Work(true), quorum.Link{Anchor: leader, Up: true})
	p := l.proposal(1, 1, "b1", l.cfg.Root)
	l.step(p)
	signs(t, "its proposal is here", l.step(quorum.Link{Anchor: leader}))
	signs(t, "and valid", l.step(verdict(p, true)), quorum.Notarize)
}

func TestP16FinalBlocksComeOnceAndInOrder(t *testing.T) {
	l := newLone(t, 2)
	root := l.cfg.Root
	f2, f1, f5 := l.cert(quorum.Finalize, 2, "b2", root, 1, 3, 4), l.cert(quorum.Finalize, 1, "b1", root, 1, 3, 4), l.cert(quorum.Finalize, 5, "b5", root, 1, 3, 4)
	var got []aweigh.View
	for _, c := range l.step(f2, f1, f2, f5, f2).Final {
		got = append(got, c.Subject.View)
	}
	if !slices.Equal(got, []aweigh.View{2, 5}) || l.engine.Final() != 5 {
		t.Errorf("final views %v, want 2 and 5; b1 is final with b2", got)
	}
}

func TestP17OffersKeepTheirOwnPace(t *testing.T) {
	l := newLone(t, 2)
	wake := l.step(quorum.Work(true)).Wake
	for i := 1; i <= 400; i++ { // 100 s, while views take ever longer
		for l.now = wake; ; l.now = wake {
			out := l.step()
			for _, s := range out.Sign { // the others give up as well
				if s.Kind == quorum.Nullify {
					out = l.step(l.sign(2, s), l.cert(quorum.Nullify, s.View, "", l.cfg.Root, 1, 2, 3, 4))
				}
			}
			wake = out.Wake
			if out.Offer != nil {
				break
			}
			if l.now.Sub(start) >= time.Duration(i)*250*time.Millisecond {
				break // offered together with a nullify
			}
		}
		if got, want := l.now.Sub(start), time.Duration(i)*250*time.Millisecond; got != want {
			t.Fatalf("offer %d after %s, want %s", i, got, want)
		}
	}
}

func TestP17HoldingsBringAnyoneToTheSameView(t *testing.T) {
	n := four(t)
	for m := range 9 {
		n.work(m)
		n.run(3 * time.Second)
	}
	n.work(9)
	n.deliver(func(m message) bool { return m.to != 4 })
	n.crash(n.peer(1))
	n.run(700 * time.Millisecond)
	have := n.peer(2).engine
	o := have.Holdings()
	fresh := quorum.NewEngine(n.config(n.peer(4)))
	in := inputs(o.Certificates)
	for _, v := range o.Votes {
		in = append(in, v)
	}
	fresh.Step(n.now, in...)
	if fresh.View() != have.View() || fresh.Final() != have.Final() {
		t.Errorf("reaches view %d, final %d; want %d, %d", fresh.View(), fresh.Final(), have.View(), have.Final())
	}
}

// TestP17HoldingsStayBounded: where weight enough notarizes but not enough
// finalizes, blocks pile up, but not what engines hold and offer of them.
func TestP17HoldingsStayBounded(t *testing.T) {
	n := four(t)
	n.cfg.Rules.Finalize = quorum.Rule{Num: 1, Den: 1}
	for _, p := range n.peers {
		p.engine = quorum.NewEngine(n.config(p))
	}
	n.crash(n.peer(4))
	n.work(0)
	n.run(5 * time.Minute)
	p := n.peer(2)
	view := p.engine.View()
	if view < 2*quorum.Ahead || view > 5*60*3 {
		t.Errorf("view %d after 5 minutes, want some, but at most three a second", view)
	}
	o := p.engine.Holdings()
	if len(o.Certificates) > 6 || len(o.Votes) > 4*(quorum.Ahead+2) {
		t.Errorf("offers %d certificates and %d votes", len(o.Certificates), len(o.Votes))
	}
	n.restart(n.peer(4))
	n.meet()
	n.run(time.Minute)
	if p.engine.Final() == 0 || p.wake != 0 {
		t.Errorf("with all four back: final %d, wakes %d", p.engine.Final(), p.wake)
	}
}

func TestP18AnIdleScopeIsSilent(t *testing.T) {
	l := newLone(t, 2)
	if out := l.step(); out.Wake != 0 || len(out.Sign) != 0 {
		t.Errorf("at the start: %+v", out)
	}
	n := four(t)
	n.work(0)
	n.run(time.Second)
	for _, p := range n.peers {
		out := p.engine.Step(n.now.Add(time.Hour))
		if out.Wake != 0 || out.Offer != nil || len(out.Sign)+len(out.Certified)+len(out.Check) != 0 || out.Build != nil {
			t.Errorf("%d, an hour after the last block: %+v", p.id, out)
		}
		if len(p.finals) != 1 {
			t.Errorf("%d: %d blocks for one mutation", p.id, len(p.finals))
		}
	}
}

// TestP18SlowNetworksComeToRest: with messages slower than Settle, leaders
// propose empty blocks before the last one is final. These must not call for
// others for ever.
func TestP18SlowNetworksComeToRest(t *testing.T) {
	for _, delay := range []time.Duration{0, 60, 150, 240, 400, 900, 3000} {
		n := four(t)
		n.work(0)
		n.runDelayed(delay*time.Millisecond, 3*time.Minute)
		for _, p := range n.peers {
			if p.wake != 0 || n.blocks[n.best(p)].content != 1 {
				t.Errorf("delay %d ms: anchor %d in view %d, final %s, wakes %d", delay, p.id, p.engine.View(), n.name(n.best(p)), p.wake)
			}
			if len(p.finals) > 6 {
				t.Errorf("delay %d ms: %d blocks for one mutation", delay, len(p.finals))
			}
		}
	}
}

// TestP18WorkOfOneAnchorAloneGetsABlock: no other anchor takes a bundle that has expired, and only the time of a later
// block shows its author's node that it has. The next leader must not wait until that node leads.
func TestP18WorkOfOneAnchorAloneGetsABlock(t *testing.T) {
	n := four(t)
	n.work(0, 2)
	n.run(time.Minute)
	leaders := n.peer(2).engine
	for _, p := range n.peers {
		if len(p.finals) == 0 {
			t.Fatalf("%d: no block", p.id)
		}
		if first := n.blocks[p.finals[0]]; first.view != 2 || first.content != 0 || n.id(leaders.Leader(2)) == 2 {
			t.Errorf("%d: the first block is of view %d, with content %b; want an empty one of view 2", p.id, first.view, first.content)
		}
		if p.wake != 0 || n.blocks[n.best(p)].content != 1 {
			t.Errorf("%d: final %s, wakes %d", p.id, n.name(n.best(p)), p.wake)
		}
	}
}

func TestP19TimeoutsGrowWithFailuresAndShrinkWithSuccess(t *testing.T) {
	l := newLone(t, 2)
	root := l.cfg.Root
	patience := func() time.Duration {
		from := l.now
		for v := l.engine.View(); ; {
			out := l.step()
			for _, s := range out.Sign {
				if s.Kind == quorum.Nullify && s.View == v {
					return l.now.Sub(from)
				}
			}
			l.now = out.Wake
		}
	}
	l.step(quorum.Work(true))
	for v, want := range []time.Duration{1, 2, 2, 4, 8, 8, 16} { // led by 1, 4, 1, 3, 2, 3: a repeated failure does not count
		if got := patience(); got != want*time.Second {
			t.Errorf("after %d failures: %s, want %d s", v, got, want)
		}
		in := []quorum.Input{l.cert(quorum.Nullify, aweigh.View(v+1), "", root, 1, 3, 4)}
		for _, id := range []int{1, 3, 4} { // all show that they live
			in = append(in, l.sign(id, l.at(quorum.Nullify, aweigh.View(v+1), "", root)))
		}
		l.step(in...)
	}
	// A view that ends well before its timer halves the wait again.
	for v := aweigh.View(8); v <= 10; v++ {
		l.step(l.cert(quorum.Notarize, v, "b", root, 1, 3, 4))
	}
	if got := patience(); got != time.Second/2 {
		t.Errorf("after three successes: %s, want 2 s, less for a leader that failed twice", got)
	}
	l.step(l.cert(quorum.Notarize, 11, "b", root, 1, 3, 4))
	if got := patience(); got != 2*time.Second {
		t.Errorf("after a notarization that came too late: %s, want 2 s", got)
	}
}

// TestP23ThePledgeOutlivesItsView: the block under a finalize vote may have become
// final elsewhere, so the vote is answered for however many views have passed.
func TestP23ThePledgeOutlivesItsView(t *testing.T) {
	l := newLone(t, 1)
	l.step(quorum.Work(true))
	c := l.cert(quorum.Notarize, 1, "a", l.cfg.Root, 1, 2, 3)
	signs(t, "a notarization", l.step(c), quorum.Finalize)
	l.step(l.sign(1, l.at(quorum.Nullify, 2, "", aweigh.Hash{})))
	signs(t, "nullified by us, then notarized", l.step(l.cert(quorum.Notarize, 2, "b", c.Subject.Block, 2, 3, 4)))
	for v := aweigh.View(3); v <= 2*quorum.Ahead; v++ {
		l.step(l.sign(1, l.at(quorum.Nullify, v, "", aweigh.Hash{})), l.cert(quorum.Nullify, v, "", aweigh.Hash{}, 1, 2, 3))
	}
	if got := l.engine.Pledge().Subject; got != c.Subject {
		t.Fatalf("pledge %v, want %v", got, c.Subject)
	}
	again := quorum.NewEngine(l.cfg)
	again.Restore([]quorum.Vote{l.sign(1, quorum.Subject{Kind: quorum.Finalize, View: 1, Block: c.Subject.Block})}, []quorum.Certificate{c})
	if got := again.Pledge().Subject; got != c.Subject {
		t.Fatalf("pledge %v after a restart, want %v", got, c.Subject)
	}
}

func TestTimingDefaults(t *testing.T) {
	l := newLone(t, 2)
	if out := l.step(quorum.Work(true)); out.Wake != l.now.Add(250*time.Millisecond) {
		t.Errorf("first offer after %s, want 250 ms", out.Wake.Sub(l.now))
	}
	cfg := l.config(l.peer(2))
	cfg.Timing = quorum.Timing{View: time.Minute, MaxView: time.Hour, Offer: time.Hour}
	if out := quorum.NewEngine(cfg).Step(l.now, quorum.Work(true)); out.Wake != l.now.Add(time.Minute) {
		t.Errorf("own timing: wakes after %s, want one minute", out.Wake.Sub(l.now))
	}
}

// TestWatchersFollowAndStaySilent: an engine without a seat sees all become
// final, signs nothing, and never asks to be woken in the past.
func TestWatchersFollowAndStaySilent(t *testing.T) {
	n := four(t)
	cfg := n.cfg
	cfg.Self = aweigh.AnchorID{}
	w := quorum.NewEngine(cfg)
	now := start
	out := w.Step(now, quorum.Work(true))
	for range 100 {
		if out.Wake <= now || len(out.Sign) != 0 || out.Build != nil {
			t.Fatalf("at %s: %+v", now.Sub(start), out)
		}
		now = out.Wake
		out = w.Step(now)
	}
	l := &lone{n, w, now}
	if out := l.step(quorum.Work(false), l.cert(quorum.Notarize, 1, "b1", n.cfg.Root, 1, 2, 3), l.cert(quorum.Finalize, 1, "b1", n.cfg.Root, 1, 2, 3)); len(out.Final) != 1 || out.Wake != 0 || len(out.Sign) != 0 {
		t.Errorf("a final block: %+v", out)
	}
}

// TestForksBeyondTheBudgetStopTheEngine: certificates that cannot both be are
// never passed over in silence.
func TestForksBeyondTheBudgetStopTheEngine(t *testing.T) {
	for name, kinds := range map[string][2]quorum.Kind{
		"two notarized":           {quorum.Notarize, quorum.Notarize},
		"two finalized":           {quorum.Finalize, quorum.Finalize},
		"notarized and finalized": {quorum.Notarize, quorum.Finalize},
		"finalized and nullified": {quorum.Finalize, quorum.Nullify},
		"nullified and finalized": {quorum.Nullify, quorum.Finalize},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: goes on", name)
				}
			}()
			l := newLone(t, 2)
			l.step(l.cert(kinds[0], 1, "b1", l.cfg.Root, 1, 3, 4))
			l.step(l.cert(kinds[1], 1, "b1x", l.cfg.Root, 1, 3, 4))
		}()
	}
}

// TestP19AWastefulLeaderIsWaitedForLess: a connected anchor whose views give no
// block costs the others the full wait in one of eight only, and the full wait
// again as soon as it has given one.
func TestP19AWastefulLeaderIsWaitedForLess(t *testing.T) {
	l := newLone(t, 2)
	bad := anchor(3)
	prev, turns := l.cfg.Root, 0
	for v := aweigh.View(1); turns < 17; v++ {
		name := fmt.Sprint("b", v)
		if l.engine.Leader(v) != bad {
			l.step(quorum.Work(true), l.sign(3, l.at(quorum.Nullify, v, "", prev)))
			l.step(l.cert(quorum.Notarize, v, name, prev, 1, 2, 4))
			l.step(l.cert(quorum.Finalize, v, name, prev, 1, 2, 4))
			prev = l.at(quorum.Notarize, v, name, prev).Block
			continue
		}
		began := l.now
		for out := l.step(quorum.Work(true)); len(out.Sign) == 0; out = l.step() {
			l.now = out.Wake
		}
		want := time.Second >> min(turns, 3)
		if turns%8 == 0 {
			want = time.Second << min(turns/8, 2)
		}
		if waited := l.now.Sub(began); waited != want {
			t.Fatalf("turn %d, view %d: waited %v, want %v", turns, v, waited, want)
		}
		l.step(l.cert(quorum.Nullify, v, "", prev, 1, 2, 4))
		turns++
	}
}

// TestP19LongOutagesAreForgotten: however many views failed, a few that succeed
// bring the timeout back.
func TestP19LongOutagesAreForgotten(t *testing.T) {
	l := newLone(t, 2)
	root := l.cfg.Root
	v := aweigh.View(1)
	for ; v <= 500; v++ {
		in := []quorum.Input{quorum.Work(true), l.cert(quorum.Nullify, v, "", root, 1, 3, 4)}
		for _, id := range []int{1, 3, 4} {
			in = append(in, l.sign(id, l.at(quorum.Nullify, v, "", root)))
		}
		l.step(in...)
	}
	for range 8 {
		l.step(l.cert(quorum.Notarize, v, "b", root, 1, 3, 4))
		v++
	}
	began := l.now
	for out := l.step(); ; out = l.step() {
		if slices.ContainsFunc(out.Sign, func(s quorum.Subject) bool { return s.Kind == quorum.Nullify && s.View == v }) {
			break
		}
		l.now = out.Wake
	}
	if waited := l.now.Sub(began); waited > 4*time.Second {
		t.Errorf("waits %v after 500 failures and 8 successes", waited)
	}
}

// TestLeadersOfAnOlderProgramProposeOnce: where one round decides, votes to notarize
// only mean that their leader proposed.
func TestLeadersOfAnOlderProgramProposeOnce(t *testing.T) {
	cfg := quorum.Config{Weights: weigh(t, 1, 1, 1, 1), Rules: quorum.DefaultRules(quorum.Crash), Root: aweigh.Sum([]byte("root"))}
	cfg.Self = quorum.Leader(cfg.Weights, cfg.Seed, 1)
	e := quorum.NewEngine(cfg)
	old := quorum.Subject{Kind: quorum.Notarize, View: 1, Block: aweigh.Sum([]byte("b1"))}
	e.Restore([]quorum.Vote{{Subject: old, Signature: quorum.Signature{Anchor: cfg.Self, Bytes: []byte{1}}}}, nil)
	out := e.Step(start, quorum.Work(true), quorum.Certificate{Subject: old})
	if out.Build != nil || len(out.Sign) > 0 || e.View() != 1 {
		t.Errorf("in view %d it builds %v and signs %v", e.View(), out.Build, out.Sign)
	}
}

// TestP7NothingIsBuiltForAViewGivenUp: the parent of a proposal becomes known at the
// moment at which the view's time is over.
func TestP7NothingIsBuiltForAViewGivenUp(t *testing.T) {
	l := newLone(t, 1) // leads view 3
	root := l.cfg.Root
	l.step(quorum.Work(true), l.cert(quorum.Nullify, 2, "", root, 2, 3, 4))
	l.now = l.now.Add(time.Minute)
	out := l.step(l.cert(quorum.Nullify, 1, "", root, 2, 3, 4))
	signs(t, "late", out, quorum.Nullify)
	if out.Build != nil {
		t.Errorf("gives view 3 up, and builds %+v", out.Build)
	}
}
