package node

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/store"
)

// stopping is a store whose commits fail from the one on that is counted down to.
type stopping struct {
	store.Store
	left int
}

var errStopped = errors.New("stopped by the test")

func (s *stopping) Commit(ops []kv.Op, sync bool) error {
	if s.left--; s.left < 0 {
		return errStopped
	}
	return s.Store.Commit(ops, sync)
}

// TestInstallationCutOffIsFinished: at whatever commit it stops, nothing can be
// read until it was finished, and then all of it.
func TestInstallationCutOffIsFinished(t *testing.T) {
	a := newFar(t, nil)
	startAll(a)
	a.write(50)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	offer := a.running[0].offerOf(ctx, t)
	id := a.genesis.Hash()
	fetched, err := machine.Bootstrap(a.genesis)
	if err != nil {
		t.Fatal(err)
	}
	fetched = append(fetched, kv.Set(machine.Record(id, 'g'), []byte("stays")))
	if err := offer.check(a.running[0].root.epochs.epoch(), a.running[0].root.epochs.epoch()); err != nil {
		t.Fatal(err)
	}
	for no := range offer.parts() {
		raw, err := a.running[0].root.servePart("", partAsk{Height: offer.height(), Number: no})
		if err != nil {
			t.Fatal(err)
		}
		fetched = append(fetched, kv.Set(keyPart(id, no), raw))
	}
	fetched = append(fetched, kv.Set(machine.KeyJob(id), canon.Encode(offer)))
	for commits := 0; ; commits++ {
		s := &stopping{Store: store.NewMem(), left: 1 << 20}
		if err := s.Commit(fetched, true); err != nil {
			t.Fatal(err)
		}
		s.left = commits
		err := install(s, a.genesis)
		if err != nil && !errors.Is(err, errStopped) {
			t.Fatal(err)
		}
		if _, replacing, _ := s.Get(machine.KeyInstalling(id)); replacing {
			if _, err := scope.Open(s, id); err == nil {
				t.Errorf("after %d commits there is a state to read", commits)
			}
		}
		s.left = 1 << 20
		if err := resumeInstall(s, a.genesis); err != nil {
			t.Fatalf("after %d commits: %v", commits, err)
		}
		if state, err2 := scope.Open(s, id); commits > 0 && (err2 != nil || state.Head().Digest != offer.Next.Header.State) {
			t.Errorf("after %d commits: %v", commits, err2)
		}
		if v, ok, _ := s.Get(machine.Record(id, 'g')); !ok || string(v) != "stays" {
			t.Errorf("after %d commits another record is gone", commits)
		}
		if err == nil {
			if commits < 4 {
				t.Errorf("it took %d commits", commits)
			}
			return
		}
	}
}
