package node

import (
	"errors"
	"fmt"
	"testing"

	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/node/referral"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
)

// TestLargeRevisionsAreToldWhole deletes more keys in one revision than are listed at a time: a watch delivers them at
// once, and a node that does not hold the scope gets all of them.
func TestLargeRevisionsAreToldWhole(t *testing.T) {
	testshort.Skip(t)
	const keys = 3000
	n := startCluster(t, 1, quorum.BFT).nodes[0]
	key := func(i int) string { return fmt.Sprintf("/k/%04d", i) }
	for i := 0; i < keys; {
		var x scope.Txn
		for ; i < keys && len(x.Success) < 100; i++ {
			x.Success = append(x.Success, scope.Op{Kind: scope.OpPut, Key: []byte(key(i)), Value: make([]byte, 1000)})
		}
		if _, err := n.Txn(t.Context(), x, Once{}); err != nil {
			t.Fatal(err)
		}
	}
	gone, end := []scope.Op{{Kind: scope.OpDelete, Key: []byte("/k/"), End: []byte("/k0")}}, errors.New("seen")
	if _, err := n.Txn(t.Context(), scope.Txn{Success: gone}, Once{}); err != nil {
		t.Fatal(err)
	}
	v, err := n.root.Read(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	at := v.Head().Revision
	var told referral.Events
	raw, err := referral.TellEvents(v.State, &referral.Watch{Key: []byte("/k/"), End: []byte("/k0"), From: at}, 0)
	if err != nil || canon.Decode(raw, &told) != nil || len(told.All) != keys || told.Next != 0 {
		t.Fatalf("%d changes came: %v", len(told.All), err)
	}
	for i := range told.All {
		if string(told.All[i].Kv.Key) != key(i) {
			t.Fatalf("in place %d stands %s", i, told.All[i].Kv.Key)
		}
	}
	err = n.Watch(t.Context(), []byte("/k/"), []byte("/k0"), at, func(c Changes) error {
		if len(c.Events) != keys || string(c.Events[keys-1].Kv.Key) != key(keys-1) || c.Revision != at {
			t.Errorf("%d changes are delivered, up to revision %d", len(c.Events), c.Revision)
		}
		return end
	})
	if !errors.Is(err, end) {
		t.Error(err)
	}
}
