package scope

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/aweigh/aweigh/quorum"
)

// TestOlderBlocksAreProven: what the keys held after an earlier block is proven, whatever came later, down to the
// revision up to which the scope is compacted.
func TestOlderBlocksAreProven(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type then struct {
			keys     map[string]string
			given    bool
			revision int64
			claim    Ancestry
		}
		r := newRealm(t, func(p *Policy) { p.EpochBlocks = 60 }) // no epoch ends but before a delegation
		now, past, given := map[string]string{}, []then(nil), false
		for i := range rapid.IntRange(1, 12).Draw(t, "steps") {
			switch op := rapid.IntRange(0, 9).Draw(t, "op"); {
			case op == 0 && r.state.head.Revision > r.state.head.Compacted+1:
				r.one(r.compaction(rapid.Int64Range(r.state.head.Compacted+1, r.state.head.Revision).Draw(t, "revision")))
			case op == 1 && !given:
				r.delegate(r.decision("/a/", quorum.BFT, "a", "b", "c", "d"))
				maps.DeleteFunc(now, func(k, _ string) bool { return strings.HasPrefix(k, "/a/") })
				given = true
			default:
				key := rapid.SampledFrom([]string{"/a", "/a/1", "/a/2", "/b", "/b/1", "/c"}).Draw(t, "key")
				if given && strings.HasPrefix(key, "/a/") {
					key = "/c"
				}
				if op < 5 {
					r.one(r.ops(del(key, "")))
					delete(now, key)
				} else {
					now[key] = fmt.Sprint(i)
					r.one(r.ops(put(key, now[key]), put("/twice", now[key]))) // two changes of one revision
					now["/twice"] = now[key]
				}
			}
			x := then{keys: maps.Clone(now), given: given, revision: r.state.head.Revision}
			r.add(r.next(nil, nil))
			x.claim = Ancestry{Genesis: r.g, Handovers: slices.Clone(r.hands), Head: r.final()}
			past = append(past, x)
		}
		for _, x := range past {
			part, err := NewOlderRangePart(x.claim, r.state, []byte("/"), []byte("0"), 1<<20, nil)
			if x.revision < r.state.head.Compacted {
				if !errors.Is(err, ErrCompacted) {
					t.Fatalf("block %d, revision %d of %d: %v", x.claim.Head.Header.Height-1, x.revision, r.state.head.Compacted, err)
				}
				continue
			}
			if err != nil {
				t.Fatalf("block %d: %v", x.claim.Head.Header.Height-1, err)
			}
			v, err := part.Verify(r.g.Network(), []byte("/"), []byte("0"))
			if err != nil || v.Height != x.claim.Head.Header.Height-1 {
				t.Fatalf("block %d is proven as %d: %v", x.claim.Head.Header.Height-1, v.Height, err)
			}
			got := map[string]string{}
			for _, kv := range part.Kvs {
				got[string(kv.Key)] = string(kv.Value)
			}
			if !maps.Equal(got, x.keys) || (len(part.Below([]byte("/"), []byte("0"))) > 0) != x.given {
				t.Fatalf("block %d held %v, and is proven to have held %v, with scopes below: %t", v.Height, x.keys, got, x.given)
			}
		}
		last := past[len(past)-1].claim
		last.Head.Header.Height += 2
		if _, err := NewOlderRangePart(last, r.state, []byte("/"), []byte("0"), 1<<20, nil); !errors.Is(err, ErrInvalid) {
			t.Fatalf("a block that is to come: %v", err)
		}
	})
}
