package node

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
)

// failed are the names of the checks that did not hold.
func failed(checks []Check) (names []string) {
	for _, c := range checks {
		if c.Err != nil {
			names = append(names, c.Name)
		}
	}
	return names
}

// running runs a still node until the test ends, or stop is called.
func launched(t *testing.T, n *Node) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- n.Run(ctx) }()
	stopped := false
	stop = func() {
		cancel()
		if !stopped {
			stopped = true
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
	}
	t.Cleanup(stop)
	return stop
}

// TestAnchorsThatLostTheirRecordAreNotReady (P9): the node lives, for a restart
// would not help, and says so as an error.
func TestAnchorsThatLostTheirRecordAreNotReady(t *testing.T) {
	n, log := stillNode(t, "n0")
	launched(t, n)
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if bad := failed(n.root.Ready(ctx)); bad != nil {
		t.Fatalf("a network of one is not ready: %v", bad)
	}
	b := votes.Ballot{
		Format: scope.Format, Domain: n.root.epochs.checker().Keyring.Domain(), Anchor: n.root.measured.roster.Load().all[0].id,
		Subject: quorum.Subject{Kind: quorum.Nullify, View: 3},
	}
	b.Signature = n.cfg.Anchor.Sign(votes.ContextBallot, b.SigningBytes())
	other, err := peer.Decode("12D3KooWGzxzKZYveHXtpG6AsrUJBcWxHBFS2HsEoGTxrMLvKXtf")
	if err != nil {
		t.Fatal(err)
	}
	n.frame(other, machine.RawFrame(machine.TagBallot, b.Encode()))
	for strings.Join(failed(n.root.Ready(ctx)), " ") != "quorum reads record" {
		if ctx.Err() != nil {
			t.Fatalf("an anchor without its record fails %v", failed(n.root.Ready(context.Background())))
		}
	}
	if bad := failed(n.root.Live(ctx)); bad != nil {
		t.Errorf("a restart is asked for: %v", bad)
	}
	text := log.take()
	for ; !strings.Contains(text, "level=ERROR msg=\"this anchor's record is older"); text += log.take() {
		select {
		case <-ctx.Done():
			t.Fatalf("the log says\n%s", text)
		case <-time.After(time.Millisecond):
		}
	}
	if !strings.Contains(text, "it signs again by itself") || !strings.Contains(text, `until="epoch 1 of /"`) {
		t.Errorf("it does not say until when, and what to do:\n%s", text)
	}
}

// TestLostRecordsInModeCrashTakeAnObserver: no anchor may lie in that mode, so it does not wait for the next epoch with
// its key.
func TestLostRecordsInModeCrashTakeAnObserver(t *testing.T) {
	s := machine.Status{Lost: true, Epoch: 6}
	for mode, want := range map[quorum.Mode]string{
		quorum.BFT:   "and signs again with epoch 7",
		quorum.Crash: "run it as an observer, without anchor.key, until epoch 7",
	} {
		if s.Rules.Mode = mode; lostErr(s) == nil || !strings.HasSuffix(lostErr(s).Error(), want) {
			t.Errorf("in mode %s: %v", mode, lostErr(s))
		}
	}
	if s.Lost = false; lostErr(s) != nil {
		t.Errorf("an anchor with its record: %v", lostErr(s))
	}
}

func TestStoppedNodesAreNotAlive(t *testing.T) {
	n, _ := stillNode(t, "n0")
	stop := launched(t, n)
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if bad := failed(n.root.Live(ctx)); bad != nil {
		t.Fatalf("not alive: %v", bad)
	}
	stop()
	for _, c := range n.root.Live(ctx) {
		if c.Name == "machine" && !errors.Is(c.Err, ErrStopped) {
			t.Errorf("after the end: %v", c.Err)
		}
	}
}

// TestFarBehindIsToldOnceAndNotReady: a block that is late is no news; a lag that
// lasts, or is long, is, and so is its end.
func TestFarBehindIsToldOnceAndNotReady(t *testing.T) {
	n, log := stillNode(t, "n0", "n1")
	w := notice{n: n.root, began: time.Now()}
	at := func(height, known aweigh.Height, behind bool) machine.Status {
		s := n.root.runner.stand.Load().Status()
		s.Head.Height, s.Known, s.Behind = height, known, behind
		return s
	}
	expect := func(s machine.Status, ready bool, line string) {
		t.Helper()
		w.catchUp(s)
		if err := n.root.behindErr(s); (err == nil) != ready {
			t.Errorf("at %d of %d: %v", s.Head.Height, s.Known, err)
		}
		if text := log.take(); line == "" && text != "" || !strings.Contains(text, line) {
			t.Errorf("at %d of %d, the log says not %q but %q", s.Head.Height, s.Known, line, text)
		}
	}
	expect(at(10, 10, false), true, "")
	expect(at(10, 11, true), true, "")
	expect(at(11, 11, false), true, "")
	far := aweigh.Height(12 + farBehind)
	expect(at(11, far, true), false, "")
	expect(at(11, far, true), false, "behind: fetching final blocks")
	expect(at(12, far, true), true, "")
	expect(at(far, far, false), true, "caught up")

	// A node that starts again knows of no block above its own, until it asks.
	if s := (machine.Status{Behind: true, Told: 1000}); n.root.behindErr(s) == nil {
		t.Error("a node that was told of a thousand blocks that it lacks counts as caught up")
	}

	expect(at(10, 10, true), true, "")
	long := time.Now().Add(-2 * longBehind)
	n.root.behindSince.Store(&long)
	expect(at(10, 10, true), false, "behind: fetching final blocks")
	expect(at(20, 20, false), true, "caught up")
}

// TestAnchorsThatHearNobodyAreNotReady, but for those that began to ask just now.
func TestAnchorsThatHearNobodyAreNotReady(t *testing.T) {
	for unheard, ready := range map[time.Duration]bool{0: true, longUnheard: true, longUnheard + 1: false} {
		if err := unheardErr(machine.Status{Listening: true, Unheard: unheard}); (err == nil) != ready {
			t.Errorf("after %v: %v", unheard, err)
		}
	}
}
