package model_test

import (
	"testing"
	"time"

	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
)

// TestAuthorsOfReadersEntries: a fork of what an entry for readers alone permits to read, and mutations that are denied
// in one branch and have another.
func TestAuthorsOfReadersEntries(t *testing.T) {
	alice, root := testKey(t, 99), testKey(t, 97)
	p := scope.DefaultPolicy(quorum.BFT)
	p.Authors = []scope.Author{
		{Name: "alice", Who: scope.OneKey, Key: alice.Public(), Prefixes: [][]byte{[]byte("/a/")}, Quota: scope.Quota{Rate: 1}},
		{Name: "any", Who: scope.Anyone, Prefixes: [][]byte{[]byte("/open/")}, Verbs: []string{scope.VerbRead}},
		{Name: "reads", Who: scope.OneKey, Key: alice.Public(), Prefixes: [][]byte{[]byte("/s/")}, Verbs: []string{scope.VerbRead}},
		{Name: "root", Who: scope.OneKey, Key: root.Public()},
	}
	w := newWorld(t, new(scope.DefaultBounds()), p)
	put := func(key string) scope.Op { return scope.Op{Kind: scope.OpPut, Key: []byte(key), Value: []byte("1")} }
	w.author = root
	sources := []string{"/open/x", "/s/x", "/other/x"}
	var puts []scope.Op
	for _, key := range sources {
		puts = append(puts, put(key))
	}
	w.step(time.Second, w.mutation(scope.Write, scope.Txn{Success: puts}))
	w.author = alice
	for i, key := range sources {
		at, err := w.state.Range([]byte(key), nil, scope.Range{})
		must(t, err)
		kv := at.Kvs[0]
		w.step(time.Second, w.mutation(scope.Name, scope.Naming{
			Kind: scope.Fork, Object: kv.UID, To: []byte("/a/" + string(rune('0'+i))), From: kv.Key, Revision: kv.ModRevision, Sub: kv.Sub,
		}))
	}
	copied, err := w.state.Range([]byte("/a/"), []byte("/a0"), scope.Range{})
	must(t, err)
	if len(copied.Kvs) != 2 {
		t.Errorf("it forks %d objects of 2 that it may read", len(copied.Kvs))
	}
	never := []scope.Compare{{Target: scope.OnVersion, Relation: scope.Greater, Key: []byte("/a/x"), Number: 9}}
	for range 12 { // more than are saved up
		w.step(0, w.mutation(scope.Write, scope.Txn{Compare: never, Success: []scope.Op{put("/s/x")}}),
			w.mutation(scope.Write, scope.Txn{Success: []scope.Op{put("/s/x")}}))
	}
	w.whole(func(int) int { return 0 })
}
