package auth

import (
	"fmt"
	"testing"

	"github.com/aweigh/aweigh/scope"
)

// TestBoundsAreThoseOfTheUser: a transaction carries all that its user may write, or where that is much, what concerns
// the keys that it puts; never a range without keys, whose end would stand for all.
func TestBoundsAreThoseOfTheUser(t *testing.T) {
	var many []span
	for i := range reachRanges + 1 {
		many = append(many, span{fmt.Appendf(nil, "/%03d/", i), fmt.Appendf(nil, "/%03d0", i)})
	}
	put := func(key string) scope.Op { return scope.Op{Kind: scope.OpPut, Key: []byte(key)} }
	for what, c := range map[string]struct {
		r    *Rights
		t    scope.Txn
		want int
	}{
		"no user":          {nil, scope.Txn{Success: []scope.Op{put("/a")}}, 0},
		"root":             {&Rights{root: true}, scope.Txn{Success: []scope.Op{put("/a")}}, 0},
		"no put":           {&Rights{write: []span{{nil, nil}}}, scope.Txn{Success: []scope.Op{{Kind: scope.OpDelete, Key: []byte("/a")}}}, 0},
		"all keys":         {&Rights{write: []span{{nil, nil}}}, scope.Txn{Success: []scope.Op{put("/a")}}, 1},
		"two of many":      {&Rights{write: many}, scope.Txn{Success: []scope.Op{put("/003/a")}, Failure: []scope.Op{{Kind: scope.OpTxn, Txn: &scope.Txn{Success: []scope.Op{put("/007/a")}}}}}, 2},
		"before every key": {&Rights{write: []span{{nil, []byte{0}}, {[]byte("/a"), []byte("/b")}}}, scope.Txn{Success: []scope.Op{put("/a")}}, 1},
	} {
		c.r.Bound(&c.t)
		if len(c.t.Reach) != c.want {
			t.Errorf("%s: %d ranges: %q", what, len(c.t.Reach), c.t.Reach)
		}
		if err := c.t.Check(scope.DefaultLimits()); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
}
