package quorum_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/quorum"
	"github.com/cockroachdb/datadriven"
)

// TestTranscripts plays the stories of testdata. Every line is an act of an
// anchor, or a certificate that it gets, in order of time. The commands:
//
//	new weights=1,1,1,1 [mode=bft] [liars=4] [seed=x]  a network; prints its leaders
//	work [to=1,2]               a mutation is submitted
//	deliver [from=] [to=] [kind=] [limit=]   deliver matching messages until none is left
//	drop [from=] [to=] [kind=]  lose matching messages
//	tick 1s                     let time pass without deliveries
//	run 1s                      let time pass, delivering everything at once
//	views 5                     keep up the work for so many views; prints one line for each
//	crash 2, restart 2          stop an anchor, start it from its record
//	propose from=4 block=b1 on=root to=1,2   a liar's words
//	vote from=4 kind=notarize block=b1 to=1
//	status                      views, finals and alarms
func TestTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		var s story
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			return s.play(t, d)
		})
	})
}

type story struct {
	net       *network
	out       strings.Builder
	mutations int
}

func (s *story) play(t *testing.T, d *datadriven.TestData) string {
	s.out.Reset()
	n := s.net
	switch d.Cmd {
	case "new":
		s.start(t, d)
	case "work":
		n.work(s.mutations, ids(t, d, "to")...)
		s.mutations++
	case "deliver":
		limit := -1
		d.MaybeScanArgs(t, "limit", &limit)
		match := matching(t, d)
		n.deliver(func(m message) bool {
			if limit == 0 || !match(m) {
				return false
			}
			limit--
			return true
		})
	case "drop":
		match, lost := matching(t, d), 0
		kept := n.queue[:0]
		for _, m := range n.queue {
			if match(m) {
				lost++
			} else {
				kept = append(kept, m)
			}
		}
		n.queue = kept
		fmt.Fprintf(&s.out, "%d lost\n", lost)
	case "tick":
		n.tick(duration(t, d))
	case "run":
		n.run(duration(t, d))
	case "views":
		s.views(number(t, d.CmdArgs[0].Key))
	case "crash":
		n.crash(n.peer(number(t, d.CmdArgs[0].Key)))
	case "restart":
		n.restart(n.peer(number(t, d.CmdArgs[0].Key)))
	case "propose":
		s.propose(t, d)
	case "vote":
		s.vote(t, d)
	case "status":
		for _, p := range n.peers {
			if p.engine != nil {
				fmt.Fprintf(&s.out, "%d: view %d, final %s, %s\n", p.id, p.engine.View(), n.name(n.best(p)), alarm(p, n.now))
			}
		}
		fmt.Fprintf(&s.out, "%d messages wait\n", len(n.queue))
	default:
		t.Fatalf("%s: no command %q", d.Pos, d.Cmd)
	}
	return s.out.String()
}

func (s *story) start(t *testing.T, d *datadriven.TestData) {
	mode, seed := "bft", ""
	d.MaybeScanArgs(t, "mode", &mode)
	d.MaybeScanArgs(t, "seed", &seed)
	var weights []uint64
	for _, x := range ids(t, d, "weights") {
		weights = append(weights, uint64(x))
	}
	m, err := quorum.ParseMode(mode)
	if err != nil {
		t.Fatal(err)
	}
	w := weigh(t, weights...)
	s.mutations = 0
	s.net = newNetwork(quorum.Config{
		Weights: w, Rules: quorum.DefaultRules(m),
		Seed: aweigh.Sum([]byte(seed)), Root: aweigh.Sum([]byte("root")),
	}, ids(t, d, "liars")...)
	s.net.log = func(f string, args ...any) { fmt.Fprintf(&s.out, f+"\n", args...) }
	s.net.broken = func(f string, args ...any) { t.Fatalf("%s: "+f, append([]any{d.Pos}, args...)...) }
	s.out.WriteString("leaders:")
	for v := aweigh.View(1); v <= 8; v++ {
		fmt.Fprintf(&s.out, " %d", s.net.id(quorum.Leader(w, s.net.cfg.Seed, v)))
	}
	s.out.WriteString("\n")
}

// views prints of each view how it ended at the last anchor, and how long it took.
func (s *story) views(count int) {
	n, log := s.net, s.net.log
	p := n.peers[len(n.peers)-1]
	n.log = func(string, ...any) {}
	defer func() { n.log = log }()
	for range count {
		v, from := p.engine.View(), n.now
		for p.engine.View() == v {
			if p.known == p.carried {
				n.work(s.mutations%64, p.id)
				n.work(s.mutations % 64)
				s.mutations++
			}
			n.run(10 * time.Millisecond)
		}
		end := "nullified"
		if !p.engine.Certificate(quorum.Finalize, v).IsZero() {
			end = "final"
		}
		fmt.Fprintf(&s.out, "view %d, led by %d: %s after %s\n", v, n.id(quorum.Leader(n.cfg.Weights, n.cfg.Seed, v)), end, n.now.Sub(from))
	}
}

func (s *story) propose(t *testing.T, d *datadriven.TestData) {
	var name, on string
	from := 0
	d.ScanArgs(t, "from", &from)
	d.ScanArgs(t, "block", &name)
	d.ScanArgs(t, "on", &on)
	h := s.net.block(name, viewOf(t, name), s.net.find(on), 0)
	b := s.net.blocks[h]
	b.bad = d.HasArg("bad")
	s.net.blocks[h] = b
	v := s.net.sign(from, quorum.Subject{Kind: s.net.cfg.Rules.Mode.Vouch(), View: b.view, Block: h})
	s.net.send(from, parcel{proposal: quorum.Proposal{Vote: v, Parent: b.parent}}, ids(t, d, "to")...)
}

func (s *story) vote(t *testing.T, d *datadriven.TestData) {
	var kind, name string
	from := 0
	d.ScanArgs(t, "from", &from)
	d.ScanArgs(t, "kind", &kind)
	d.ScanArgs(t, "block", &name)
	sub := quorum.Subject{View: viewOf(t, name)}
	for sub.Kind = quorum.Notarize; sub.Kind.String() != kind; sub.Kind++ {
	}
	if sub.Kind != quorum.Nullify {
		sub.Block = s.net.find(name)
	}
	s.net.send(from, s.net.sign(from, sub), ids(t, d, "to")...)
}

// matching is the filter of deliver and drop.
func matching(t *testing.T, d *datadriven.TestData) func(message) bool {
	from, to := ids(t, d, "from"), ids(t, d, "to")
	kind := ""
	d.MaybeScanArgs(t, "kind", &kind)
	has := func(set []int, x int) bool {
		for _, y := range set {
			if x == y {
				return true
			}
		}
		return len(set) == 0
	}
	return func(m message) bool {
		return has(from, m.from) && has(to, m.to) && (kind == "" || kind == kindOf(m.body))
	}
}

func kindOf(body any) string {
	switch b := body.(type) {
	case quorum.Vote:
		return b.Kind.String()
	case parcel:
		return "propose"
	case quorum.Offer:
		return "offer"
	}
	return "certificate"
}

func ids(t *testing.T, d *datadriven.TestData, key string) (out []int) {
	for _, a := range d.CmdArgs {
		if a.Key == key {
			for _, v := range a.Vals {
				out = append(out, number(t, v))
			}
		}
	}
	return out
}

func number(t *testing.T, s string) int {
	x, err := strconv.Atoi(s)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// viewOf reads the view in a name like "b12x".
func viewOf(t *testing.T, name string) aweigh.View {
	return aweigh.View(number(t, strings.Trim(name, "bxyz")))
}

func duration(t *testing.T, d *datadriven.TestData) time.Duration {
	x, err := time.ParseDuration(d.CmdArgs[0].Key)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func alarm(p *peer, now aweigh.Instant) string {
	if p.wake == 0 {
		return "idle"
	}
	return fmt.Sprintf("wakes in %s", p.wake.Sub(now))
}
