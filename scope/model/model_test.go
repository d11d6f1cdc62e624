package model_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/scope/model"
)

// Keys with zero bytes, with 0xff, and prefixes of one another: what an encoding that does not keep order stumbles over.
var someKeys = []string{"\x00", "\x00\x01", "a", "a\x00", "a\x00\x00", "a\x00\x01", "a\x00\xff", "a\x01", "ab", "b", "\xff", "\xff\xff"}

var someLeases = []int64{-7, 1, 2}

// drawMutation is a well-formed mutation.
func (w *world) drawMutation(d *model.Drawing) scope.Mutation {
	switch d.Pick(10) {
	case 0:
		return w.mutation(scope.Compact, d.Compaction())
	case 1, 2:
		return w.mutation(scope.Lease, d.Lease())
	case 3, 4:
		return w.mutation(scope.Name, d.Naming())
	}
	return w.mutation(scope.Write, d.Txn(w.g.Policy.Limits))
}

// TestStatesAreTheModels runs random programs, and compares every outcome, the lineage, and all that can be read.
func TestStatesAreTheModels(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var asked []scope.Approval
		if rapid.IntRange(0, 3).Draw(t, "approvals") == 0 {
			asked = []scope.Approval{
				{Matter: scope.Changes, Prefix: []byte("ab"), Num: 1, Den: 1, Window: time.Hour},
				{Matter: scope.Deletions, Prefix: []byte("a\x00"), Num: 1, Den: 1, Window: time.Hour},
			}
		}
		w := newWorld(t, asked...)
		pick := func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "pick") }
		var past []scope.Mutation
		for range rapid.IntRange(1, 12).Draw(t, "blocks") {
			d := &model.Drawing{Pick: pick, View: w.model.At(w.model.Height()), Leases: someLeases}
			for _, key := range someKeys {
				d.Keys = append(d.Keys, []byte(key))
			}
			var muts []scope.Mutation
			if w.nonce == 0 { // mostly there are leases to attach keys to
				for _, id := range someLeases {
					muts = append(muts, w.mutation(scope.Lease, scope.LeaseRequest{Kind: scope.LeaseGrant, IDs: []int64{id}, TTL: 10}))
				}
			}
			for range rapid.IntRange(0, 4).Draw(t, "mutations") {
				muts = append(muts, w.drawMutation(d))
			}
			if len(past) > 0 && rapid.Bool().Draw(t, "again") {
				muts = append(muts, rapid.SampledFrom(past).Draw(t, "past"))
			}
			past = append(past, muts...)
			w.step(rapid.SampledFrom([]time.Duration{time.Nanosecond, time.Second, 4 * time.Second, time.Minute, 3 * time.Minute}).Draw(t, "later"), muts...)
			w.whole(pick)
		}
	})
}
