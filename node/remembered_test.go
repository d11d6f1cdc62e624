package node

import (
	"fmt"
	"testing"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/store"
)

// TestFewStrangersAreRemembered: what a node keeps of each peer is bounded, however many come and go.
func TestFewStrangersAreRemembered(t *testing.T) {
	a := newAccounts(rollOf(nil), newStrangers())
	var help nextHelp
	for i := range 3 * maxAccounts {
		p := Peer(fmt.Sprint(i))
		x := a.of(p)
		x.work.AllowN(time.Now(), x.work.Burst()) // it owes something
		help.may(p, 1, maxHelped)
	}
	if n := len(a.peers); n == 0 || n > maxAccounts {
		t.Errorf("%d accounts, at most %d", n, maxAccounts)
	}
	if n := len(help); n == 0 || n > maxHelped {
		t.Errorf("%d were helped, at most %d", n, maxHelped)
	}
}

// TestFewSnapshotsAreKept: however many are asked for.
func TestFewSnapshotsAreKept(t *testing.T) {
	var s shelf
	for i := range 3 * mostKept {
		s.put(keptSnapshot{}, aweigh.Height(i))
		s.take(aweigh.Height(i))
	}
	if n := len(s.kept); n == 0 || n > mostKept {
		t.Errorf("%d snapshots are kept, at most %d", n, mostKept)
	}
}

// keptSnapshot is one of which nothing is read.
type keptSnapshot struct{ store.Snapshot }

func (keptSnapshot) Close() error { return nil }
