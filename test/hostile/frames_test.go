package hostile

import (
	"context"
	"testing"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/internal/testwait"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/p2p"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/votes"
)

// attempts is how often a frame is sent to see what becomes of its sender: more
// than a non-member is forgiven.
const attempts = 20

// TestWhatNoHonestNodeSendsIsRefused: every such frame is counted as dropped,
// its sender loses its connection and is refused for a while, and the network
// commits as before.
func TestWhatNoHonestNodeSendsIsRefused(t *testing.T) {
	x := newNetwork(t, 4)
	f := x.forge(t)
	foreign := f.domain
	foreign.Network = aweigh.Sum([]byte("another network"))
	subject := quorum.Subject{Kind: quorum.Nullify, View: 100}
	nonMember := f.ballot(0, f.domain, subject)
	nonMember.Anchor = f.author.Public().ID()
	nonMember.Signature = f.author.Sign(votes.ContextBallot, nonMember.SigningBytes())
	bundle := machine.Frame(f.bundle([]byte("v")))
	full := machine.Frame(f.sorted(f.announcement(0, 1, 2)))
	unknown := f.announcement(0, 1)
	unknown.Certificate.Signatures = append(unknown.Certificate.Signatures, quorum.Signature{Anchor: nonMember.Anchor, Bytes: nonMember.Signature})
	twice := f.announcement(0, 1)
	twice.Certificate.Signatures = append(twice.Certificate.Signatures, twice.Certificate.Signatures[1])
	raw, err := x.node(0).Root().History().Raw(1)
	if err != nil {
		t.Fatal(err)
	}
	keyring, err := x.Genesis.Keyring()
	if err != nil {
		t.Fatal(err)
	}
	if err := f.sorted(f.announcement(0, 1, 2)).Check(keyring); err != nil {
		t.Fatalf("the announcement that the others are made of is not valid itself: %v", err)
	}
	victim := 0 // another each time, since all attackers come from one address
	for name, frame := range map[string][]byte{
		"empty":                                 {},
		"unknown tag":                           []byte("zzz"),
		"malformed bundle":                      append([]byte("b"), 0xff, 0xff),
		"malformed ballot":                      append([]byte("v"), 0x80),
		"malformed proposal":                    append([]byte("p"), 0x80),
		"malformed offer":                       append([]byte("o"), 0x9f),
		"malformed want":                        append([]byte("w"), 0x82, 0x00),
		"truncated bundle":                      bundle[:len(bundle)-7],
		"bundle with bytes after it":            append(append([]byte(nil), bundle...), 0),
		"bundle with a forged signature":        spoiled(bundle),
		"ballot with a forged signature":        spoiled(machine.Frame(f.ballot(0, f.domain, subject))),
		"ballot of another network":             machine.Frame(f.ballot(0, foreign, subject)),
		"ballot of a non-member":                machine.Frame(nonMember),
		"block from a non-member":               machine.Frame(machine.RawBlock(raw)),
		"unasked blocks":                        machine.Frame(machine.Blocks{Height: 1 << 40}),
		"announcement one signature short":      machine.Frame(f.sorted(f.announcement(0, 1))),
		"announcement with a signature twice":   machine.Frame(f.sorted(twice)),
		"announcement with one of a non-member": machine.Frame(f.sorted(unknown)),
		"announcement with a forged one":        spoiled(full),
	} {
		t.Run(name, func(t *testing.T) {
			p, to := x.attacker(t, victim)
			dropped := x.node(victim).Dropped()
			s, err := p.Open(t.Context(), to, "frames")
			if err != nil {
				t.Fatal(err)
			}
			for range attempts {
				if Write(s, Frame(frame), time.Second) != nil {
					break // it hung up in the middle
				}
			}
			testwait.Until(t, "the attacker is disconnected", func() bool { return !p.Connected(to) })
			if got := x.node(victim).Dropped() - dropped; got < 5 {
				t.Errorf("%d frames are counted as dropped", got)
			}
			refused := x.stats(func(s p2p.Stats) uint64 { return s.GateRefusals })
			testwait.Until(t, "it is refused when it comes again", func() bool {
				_ = x.knock(p, victim)
				return x.stats(func(s p2p.Stats) uint64 { return s.GateRefusals }) > refused && !p.Connected(to)
			})
		})
		victim = (victim + 1) % 4
	}
	x.commits(t)
}

// knock dials a node once.
func (x *net4) knock(p *Peer, i int) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	for _, a := range x.node(i).Addrs() {
		if _, err := p.Connect(ctx, a); err == nil {
			return nil
		}
	}
	return ctx.Err()
}

// TestStaleFramesAreDroppedWithoutBlame: an honest node may be in another epoch.
func TestStaleFramesAreDroppedWithoutBlame(t *testing.T) {
	x := newNetwork(t, 4)
	f := x.forge(t)
	epoch, roster := f.domain, f.domain
	epoch.Epoch++
	roster.Roster = aweigh.Sum([]byte("another roster"))
	subject := quorum.Subject{Kind: quorum.Nullify, View: 100}
	p, to := x.attacker(t, 0)
	s, err := p.Open(t.Context(), to, "frames")
	if err != nil {
		t.Fatal(err)
	}
	dropped := x.node(0).Dropped()
	for range attempts {
		for _, d := range []votes.Domain{epoch, roster} {
			if err := Write(s, Frame(machine.Frame(f.ballot(0, d, subject))), time.Second); err != nil {
				t.Fatal(err)
			}
		}
	}
	testwait.Until(t, "all are counted", func() bool { return x.node(0).Dropped()-dropped >= 2*attempts })
	if blamed := x.stats(func(s p2p.Stats) uint64 { return s.Blamed }); blamed > 0 || !p.Connected(to) {
		t.Errorf("blamed %d times, connected: %v", blamed, p.Connected(to))
	}
	x.commits(t)
}

// TestReplayedFramesChangeNothing: what was valid once may come any number of
// times, and is no fault of whoever passes it on.
func TestReplayedFramesChangeNothing(t *testing.T) {
	t.Parallel()
	testshort.Skip(t)
	x := newNetwork(t, 4)
	f := x.forge(t)
	p, to := x.attacker(t, 0)
	s, err := p.Open(t.Context(), to, "frames")
	if err != nil {
		t.Fatal(err)
	}
	bundle, before := Frame(machine.Frame(f.bundle([]byte("once")))), int64(0)
	testwait.Until(t, "all are level", func() bool {
		before = x.node(0).Root().Status().Head.Revision
		for i := range 4 {
			if x.node(i).Root().Status().Head.Revision != before {
				return false
			}
		}
		return true
	})
	replay := append(append([]byte(nil), bundle...), Frame(machine.Frame(f.sorted(f.announcement(0, 1, 2))))...)
	for range 100 {
		if err := Write(s, replay, 5*time.Second); err != nil {
			t.Fatal(err)
		}
	}
	testwait.Until(t, "the mutation applies", func() bool { return x.node(0).Root().Status().Head.Revision > before })
	received := x.node(0).NetworkStats().FramesReceived
	testwait.Until(t, "all replays have come", func() bool {
		was := received
		received = x.node(0).NetworkStats().FramesReceived
		return received >= 200 && received == was
	})
	x.commits(t)
	testwait.Until(t, "one mutation and four writes are final", func() bool { return x.node(0).Root().Status().Head.Revision >= before+1+4 })
	if got := x.node(0).Root().Status().Head.Revision; got != before+1+4 {
		t.Errorf("revision %d after one mutation and four writes from %d", got, before)
	}
	if !p.Connected(to) {
		t.Error("a peer was disconnected for repeating what is valid")
	}
}
