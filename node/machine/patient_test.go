package machine

import (
	"errors"
	"testing"
	"time"

	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
)

// newPatient makes a lone machine whose policy lets motions wait for a month.
func newPatient(t *testing.T) *lone {
	p := scope.OpenPolicy(quorum.BFT)
	p.Limits.Pending = 30 * 24 * time.Hour
	p.Approvals = []scope.Approval{{Matter: scope.Changes, Prefix: []byte("/secrets/"), Num: 1, Den: 2, Window: time.Hour}}
	return newLone(t, p, true)
}

// waits is a bundle of an author that is valid for a time, patient if that is more than a minute.
func (n *lone) waits(t *testing.T, author votes.PrivateKey, nonce byte, size int, valid time.Duration) *scope.CheckedBundle {
	t.Helper()
	b, err := scope.Sign(author, n.chain.policy.Limits, scope.Mutation{
		Scope: n.id, Class: scope.Write, Content: canon.Encode(putTxn("/secrets/k", string(make([]byte, size)))),
		Nonce: []byte{nonce, 2, 3, 4, 5, 6, 7, 8}, ValidUntil: n.now.Add(valid), Patient: valid > time.Minute,
	})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestPatientBundlesLeaveRoom: what may wait for weeks takes a part of the pool, and that of one author a smaller one.
func TestPatientBundlesLeaveRoom(t *testing.T) {
	n := newPatient(t)
	n.pool.limit = 16 << 20
	const month, size = 29 * 24 * time.Hour, 400 << 10
	fill := func(author votes.PrivateKey) (taken int) {
		for i := range byte(10) {
			switch err := n.admit(n.waits(t, author, i, size, month), "peer"); {
			case err == nil:
				taken++
			case !errors.Is(err, ErrBusy) || !errors.Is(err, errManyPatient):
				t.Fatal(err)
			}
		}
		return taken
	}
	var all []int
	for i := range byte(4) {
		all = append(all, fill(loneKey(t, 20+i)))
	}
	if all[0] != 2 || all[1] != 2 || all[3] != 0 || n.pool.bytes > n.pool.limit/patientShare/2 {
		t.Fatalf("non-members have %v bundles of %d bytes in all", all, n.pool.bytes)
	}
	if got := fill(n.author); got != 2 {
		t.Errorf("an anchor's node has %d bundles beside those of non-members", got)
	}
	if err := n.admit(n.waits(t, loneKey(t, 30), 1, size, month), ""); err != nil {
		t.Errorf("a client of this node: %v", err)
	}
	if err := n.admit(n.waits(t, loneKey(t, 31), 99, size, time.Minute), "peer"); err != nil {
		t.Errorf("what waits for a minute: %v", err)
	}

	// A bundle that expires does so behind those that wait on, and gives its room back.
	before := n.pool.bytes
	n.pool.expire(n.now.Add(2 * time.Minute))
	if n.pool.bytes >= before || len(n.pool.patient) == 0 || n.pool.patientAll == 0 {
		t.Errorf("%d bytes wait, %d before", n.pool.bytes, before)
	}
	n.pool.expire(n.now.Add(month + time.Minute))
	if n.pool.bytes != 0 || len(n.pool.patient) != 0 || n.pool.patientAll != 0 {
		t.Errorf("in the end %d bytes wait, counted are %v", n.pool.bytes, n.pool.patient)
	}
}

// TestPatientBundlesAreForMotions: no machine takes a bundle that waits for weeks where no policy asks for approval,
// and none that waits for longer than the policy allows.
func TestPatientBundlesAreForMotions(t *testing.T) {
	n := newPatient(t)
	if err := n.admit(n.waits(t, loneKey(t, 20), 1, 1, 31*24*time.Hour), ""); !errors.Is(err, errTooPatient) {
		t.Errorf("for longer than a month: %v", err)
	}
	b := n.waits(t, loneKey(t, 20), 2, 1, time.Hour)
	if err := n.admit(b, ""); err != nil {
		t.Fatal(err)
	}
	if got := len(n.pick(nil, n.now)); got != 1 {
		t.Errorf("%d bundles in a block", got)
	}

	// An epoch with less patience begins: what was taken waits as long as it may, and no longer.
	lim := n.chain.policy.Limits
	lim.ValidFor = time.Minute
	if n.refit(lim, true); n.pool.get(b.ID()) == nil {
		t.Error("it waits no more, though its kind may")
	}
	lim.Pending = 0
	if n.refit(lim, true); n.pool.get(b.ID()) != nil {
		t.Error("it waits on")
	}

	p := scope.OpenPolicy(quorum.BFT)
	p.Limits.Pending = 30 * 24 * time.Hour
	n = newLone(t, p, true)
	if err := n.admit(n.waits(t, loneKey(t, 20), 4, 1, time.Hour), ""); !errors.Is(err, errPatient) {
		t.Errorf("without approvals: %v", err)
	}
}
