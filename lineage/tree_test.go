package lineage_test

import (
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/lineage"
)

// TestTreeFollowsTheLog: a reader that gets some entries, and of the others only what Cover returns, computes the head
// that the log had after each step; and another head if one hash is wrong.
func TestTreeFollowsTheLog(t *testing.T) {
	const size = 150
	log, _ := grown(t, size)
	heads := []lineage.Head{{Root: slowRootOf(0)}}
	for n := 1; n <= size; n++ {
		heads = append(heads, lineage.Head{Size: int64(n), Root: slowRootOf(n)})
	}
	rapid.Check(t, func(t *rapid.T) {
		var tree lineage.Tree
		lie := rapid.Int64Range(0, 2*size).Draw(t, "lie") // in the entry or run that holds this index, if any does
		lied := false
		for tree.Size() < size && rapid.IntRange(0, 9).Draw(t, "more") > 0 {
			at := tree.Size()
			if rapid.Bool().Draw(t, "entry") {
				leaf := aweigh.Sum([]byte{0}, anEntry(int(at)).Encode())
				if at == lie {
					leaf[7] ^= 1
				}
				if err := tree.Add(leaf); err != nil {
					t.Fatal(err)
				}
			} else {
				to := rapid.Int64Range(at, size).Draw(t, "to")
				hashes, err := log.Cover(at, to)
				if err != nil || len(hashes) > 16 {
					t.Fatalf("%d hashes for %d to %d: %v", len(hashes), at, to, err)
				}
				for _, wrong := range [][]aweigh.Hash{append(slices.Clone(hashes), aweigh.Hash{}),
					hashes[:max(len(hashes)-1, 0)]} {
					if len(wrong) != len(hashes) {
						if err := tree.Skip(to, wrong); !errors.Is(err, lineage.ErrProof) || tree.Size() != at {
							t.Fatalf("%d hashes in place of %d: %v", len(wrong), len(hashes), err)
						}
					}
				}
				if at <= lie && lie < to {
					hashes[len(hashes)/2][3] ^= 1
				}
				if err := tree.Skip(to, hashes); err != nil || tree.Size() != to {
					t.Fatal(err)
				}
			}
			lied = lied || at <= lie && lie < tree.Size()
			if got := tree.Head(); (got == heads[got.Size]) == lied {
				t.Fatalf("after %d entries, with a lie %v: %s", got.Size, lied, got.Root)
			}
		}
	})
	if _, err := log.Cover(3, size+1); !errors.Is(err, lineage.ErrRange) {
		t.Errorf("beyond the log: %v", err)
	}
	var tree lineage.Tree
	if err := tree.Skip(lineage.MaxSize+1, nil); !errors.Is(err, lineage.ErrProof) {
		t.Errorf("beyond all logs: %v", err)
	}
}
