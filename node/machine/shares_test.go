package machine

import (
	"errors"
	"testing"
	"time"
)

// TestAuthorsShareThePool: no author takes the room of others, all authors that are no anchors leave most of the pool
// to anchors, and all other nodes leave a part to the clients of this one.
func TestAuthorsShareThePool(t *testing.T) {
	n := newPatient(t)
	n.pool.limit = 16 << 20
	const size = 400 << 10
	fill := func(author byte, times int, from Peer) (taken int) {
		key := n.author
		if author > 0 {
			key = loneKey(t, author)
		}
		for i := range times {
			switch err := n.admit(n.waits(t, key, byte(i), size, time.Minute), from); {
			case err == nil:
				taken++
			case !errors.Is(err, ErrBusy):
				t.Fatal(err)
			}
		}
		return taken
	}
	var all []int
	for i := range byte(6) {
		all = append(all, fill(20+i, 20, "peer"))
	}
	if all[0] != 2 || all[3] != 2 || all[5] != 0 || n.pool.bytes > n.pool.limit/strangersShare {
		t.Errorf("strangers have %v bundles of %d bytes in all", all, n.pool.bytes)
	}
	if got := fill(0, 30, "peer"); got != 10 {
		t.Errorf("an anchor's node has %d bundles beside those of strangers", got)
	}
	n.pool.shares.all = n.pool.limit - n.pool.limit/ownShare // by the nodes of other anchors
	if err := n.admit(n.waits(t, loneKey(t, 30), 1, 1, time.Minute), "peer"); !errors.Is(err, ErrBusy) {
		t.Errorf("into the part of this node's clients: %v", err)
	}
	n.pool.shares.all = n.pool.bytes
	if got := fill(31, 5, ""); got != 5 {
		t.Errorf("clients of this node have %d bundles", got)
	}

	// A client of this node that submits a stranger's bundle makes it its own.
	before := n.pool.shares.all
	if got := fill(20, 1, ""); got != 1 || n.pool.shares.all >= before {
		t.Errorf("%d, and other nodes have %d bytes, %d before", got, n.pool.shares.all, before)
	}
	n.pool.expire(n.now.Add(2 * time.Minute))
	if s := n.pool.shares; n.pool.bytes != 0 || s.all != 0 || s.strangers != 0 || len(s.by) != 0 {
		t.Errorf("in the end %d bytes wait, counted are %+v", n.pool.bytes, s)
	}
}

// TestLargeBundlesFindRoom: an author whose part is smaller than its bundle may have one.
func TestLargeBundlesFindRoom(t *testing.T) {
	n := newPatient(t)
	n.pool.limit = 4 << 20
	for i, want := range []error{nil, ErrBusy} {
		if err := n.admit(n.waits(t, loneKey(t, 20), byte(i), 600<<10, time.Minute), "peer"); !errors.Is(err, want) {
			t.Errorf("bundle %d: %v", i, err)
		}
	}
}
