package api

import (
	"testing"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/node"
	"github.com/aweigh/aweigh/scope"
)

// TestMotionsTellOfLeases: the answer about a put's motion has lease, TTL and keeper.
func TestMotionsTellOfLeases(t *testing.T) {
	keeper := aweigh.Sum([]byte("keeper"))
	m := node.Motion{Opening: &scope.Motion{}, Names: map[aweigh.Hash]string{keeper: "node3"}, Changes: []node.MotionChange{{
		Op: scope.Op{Kind: scope.OpPut, Key: []byte("/k"), Lease: 7, IgnoreValue: true}, Found: scope.Found{TTL: 15, Keeper: keeper},
	}}}
	c := motionOf(&m, nil).Changes[0]
	if c.Lease != 7 || c.Ttl != 15 || c.KeeperName != "node3" || aweigh.Hash(c.Keeper) != keeper || !c.KeepsValue || c.KeepsLease {
		t.Errorf("%+v", c)
	}
}
