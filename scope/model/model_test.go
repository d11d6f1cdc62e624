package model_test

import (
	"reflect"
	"slices"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/aweigh/aweigh/action"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/scope/model"
)

// Keys with zero bytes, with 0xff, and prefixes of one another: what an encoding that does not keep order stumbles
// over.
var someKeys = []string{"\x00", "\x00\x01", "a", "a\x00", "a\x00\x00", "a\x00\x01", "a\x00\xff", "a\x01", "ab", "b", "\xff", "\xff\xff"}

var someLeases = []int64{-7, 1, 2}

// TestStatesAreTheModels runs random programs, and compares every outcome, the lineage, and all that can be read.
func TestStatesAreTheModels(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var asked []scope.Approval
		if rapid.IntRange(0, 2).Draw(t, "approvals") == 0 {
			prefix := rapid.SampledFrom([]string{"ab", "a", "b", ""}).Draw(t, "of changes")
			asked = []scope.Approval{
				{Matter: scope.Changes, Prefix: []byte(prefix), Num: 1, Den: 1, Window: time.Hour},
				{Matter: scope.Deletions, Prefix: []byte("a\x00"), Num: 1, Den: 1, Window: time.Hour},
			}
			for i := range asked {
				for of := scope.ChangedKeys; of <= scope.WrittenBytes; of++ {
					if rapid.IntRange(0, 4).Draw(t, "bound") == 0 {
						limit := rapid.Int64Range(0, 3).Draw(t, "limit")
						asked[i].Bounds = append(asked[i].Bounds, scope.ImpactBound{Of: of, Limit: limit})
					}
				}
			}
		}
		pick := func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "pick") }
		w := newWorld(t, drawBounds(pick), drawPolicy(pick, asked))
		var past []scope.Mutation
		for range rapid.IntRange(1, 12).Draw(t, "blocks") {
			d := &model.Drawing{Pick: pick, View: w.model.At(w.model.Height()), Leases: someLeases, Policy: &w.g.Policy}
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
				class, content := d.Content()
				muts = append(muts, w.mutation(class, content))
			}
			if len(past) > 0 && rapid.Bool().Draw(t, "again") {
				muts = append(muts, rapid.SampledFrom(past).Draw(t, "past"))
			}
			past = append(past, muts...)
			w.reserve = rapid.SampledFrom([]int64{0, 10, 100, 200_000}).Draw(t, "reserve")
			w.step(rapid.SampledFrom([]time.Duration{time.Nanosecond, time.Second, 4 * time.Second, time.Minute, 3 * time.Minute}).Draw(t, "later"), muts...)
			w.whole(pick)
		}
		if d := w.model.At(w.model.Height()).CompareTimes(w.state, &w.g.Policy.Limits); len(d) > 0 {
			t.Fatalf("the time of the next block: %s", d[0])
		}
	})
}

// drawBounds is those of production, or some that are small.
func drawBounds(pick func(int) int) *scope.Bounds {
	b := scope.DefaultBounds()
	if pick(2) == 0 {
		return &b
	}
	v := reflect.ValueOf(&b).Elem()
	for i := range v.NumField() {
		least, err := strconv.ParseInt(v.Type().Field(i).Tag.Get("least"), 10, 64)
		if f := v.Field(i); err == nil && f.CanInt() && pick(4) == 0 {
			f.SetInt(least + int64(pick(4)))
		}
	}
	return &b
}

// drawPolicy is one with rules, and with little room, or without.
func drawPolicy(pick func(int) int, asked []scope.Approval) scope.Policy {
	p := scope.OpenPolicy(quorum.BFT)
	p.Approvals = asked
	if pick(2) == 0 {
		p.Actions = action.Table{
			{Verb: "age", Class: action.Claim, When: "1 / (object.version - 2) < 2"},
			{Verb: "extend", Class: action.Write, When: "size(object.value) < 2 || object.key.contains('b')"},
			{Verb: "write", Class: action.Write, When: "object.version < 3 && caller.weight == 0 && [1, 2].exists(i, i != object.version)"},
		}
	}
	if pick(2) == 0 {
		p.Authors = drawAuthors(pick)
	}
	if pick(3) == 0 {
		p.Limits.ScopeBytes = int64(1000 + pick(10_000))
	}
	return p
}

// drawAuthors are some that leave out a part of what is drawn.
func drawAuthors(pick func(int) int) (all []scope.Author) {
	verbs := []string{"age", "alias", "compact", "delete", "extend", "lease", "put", "users"}
	for i := range 1 + pick(3) {
		a := scope.Author{Name: string(rune('a' + i)), Who: scope.Anyone}
		for _, verb := range verbs {
			if pick(4) > 0 {
				a.Verbs = append(a.Verbs, verb)
			}
		}
		if pick(3) == 0 {
			a.Verbs = nil
		}
		if pick(2) == 0 {
			a.Prefixes = [][]byte{{byte('a' + pick(3))}}
		}
		if pick(2) == 0 {
			a.Quota = scope.Quota{Rate: int64(pick(3)), Bytes: int64(pick(40)), Leases: int64(pick(3)), Motions: int64(pick(3))}
		}
		all = append(all, a)
	}
	if !slices.ContainsFunc(all, func(a scope.Author) bool { return len(a.Verbs) == 0 || slices.Contains(a.Verbs, "put") }) {
		all[0].Verbs = nil // or the policy would lock all of them out
	}
	return all
}
