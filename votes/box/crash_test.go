package box

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/store"
	"github.com/aweigh/aweigh/votes"
)

// TestAcknowledgedBallotsSurviveCrashes: a ballot is acknowledged when a commit
// with sync has passed. Crashes forget any part of the unsynced writes.
func TestAcknowledgedBallotsSurviveCrashes(t *testing.T) {
	p := newPeople(t, 3)
	var ballots []votes.MotionBallot
	for v := range p {
		for m := range 6 {
			ballots = append(ballots, p.ballot(t, v, m, votes.Approve), p.ballot(t, v, m, votes.Reject))
		}
	}
	known := motions{p.keys(), nil}
	rapid.Check(t, func(r *rapid.T) {
		disk := store.NewMem()
		open := func() *Box {
			b, ops, err := New(network, scope, Limits{}, disk, known)
			if err != nil || len(ops) > 0 {
				r.Fatal(err)
			}
			return b
		}
		b := open()
		var waiting, acknowledged []aweigh.Hash
		for range rapid.IntRange(1, 60).Draw(r, "steps") {
			if rapid.IntRange(0, 7).Draw(r, "step") == 0 {
				disk.Crash(rapid.IntRange(0, disk.Unsynced()).Draw(r, "kept"))
				b, waiting = open(), nil
			}
			ballot := rapid.SampledFrom(ballots).Draw(r, "ballot")
			_, ops, err := b.Offer(ballot, known.Motion(ballot.Motion), nil)
			if err != nil {
				r.Fatal(err)
			}
			sync := rapid.Bool().Draw(r, "sync")
			if err := disk.Commit(ops, sync); err != nil {
				r.Fatal(err)
			}
			if waiting = append(waiting, ballot.ID()); sync {
				acknowledged, waiting = append(acknowledged, waiting...), nil
			}
			for _, id := range acknowledged {
				raw, ok, err := Load(disk, b.scope, id)
				if !b.Has(id) || !ok || err != nil {
					r.Fatalf("%s is gone: %v", id.Short(), err)
				}
				if v, err := votes.DecodeMotionBallot(raw); err != nil || v.ID() != id {
					r.Fatalf("%s is %s: %v", id.Short(), v, err)
				}
			}
		}
	})
}
