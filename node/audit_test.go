package node

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/node/fsck"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/store"
	"github.com/aweigh/aweigh/store/diskstore"
	"github.com/aweigh/aweigh/votes"
)

// full is the store of an anchor that decided alone, in which there is a record of
// nearly every kind.
func full(t *testing.T) (*store.Mem, scope.Genesis) {
	t.Helper()
	var keys [3]votes.PrivateKey
	for i := range keys {
		var err error
		if keys[i], err = votes.GenerateKey(votes.Ed25519, rand.Reader); err != nil {
			t.Fatal(err)
		}
	}
	identity, anchor, approver := keys[0], keys[1], keys[2]
	peer, err := machine.PeerOf(identity)
	if err != nil {
		t.Fatal(err)
	}
	policy := scope.OpenPolicy(quorum.BFT)
	policy.EpochBlocks = 12
	policy.Approvals = []scope.Approval{{
		Matter: scope.Changes, Prefix: []byte("/s/"), Num: 1, Den: 2, Window: time.Hour,
		Approvers: []scope.Approver{{Name: "a", Key: approver.Public(), Required: true}},
	}}
	g, err := machine.NewGenesis("n", aweigh.InstantOf(time.Now()), policy, machine.Founder{Name: "solo", Key: anchor.Public(), Peer: peer})
	if err != nil {
		t.Fatal(err)
	}
	disk, err := diskstore.Open("data", diskstore.Options{FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	n, err := New(Config{Genesis: g, Identity: identity, Anchor: &anchor, Store: disk, Listen: []string{"/ip4/127.0.0.1/tcp/0"}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- n.Run(ctx) }()
	ok := func(r machine.Receipt, err error) {
		t.Helper()
		if err != nil || r.Code != scope.Applied && r.Code != scope.Pending {
			t.Fatal(r, err)
		}
	}
	ballot := func(id aweigh.Hash) votes.MotionBallot {
		t.Helper()
		b, err := votes.SignMotionBallot(approver.Signer(), votes.MotionVote{Network: g.Hash(), Scope: g.Hash(), Motion: votes.MotionID(id), Choice: votes.Approve}, "good")
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	put := func(key, value string) {
		t.Helper()
		r, err := n.Txn(ctx, putTxn(key, value), Once{})
		ok(r, err)
	}
	child := scope.Child{Prefix: []byte("/c/"), Name: "c", Policy: scope.OpenPolicy(quorum.BFT), Anchors: g.Anchors}
	put("/c/x", "1")
	r, err := n.root.Govern(ctx, scope.Decision{Kind: scope.Delegate, Child: &child}, Once{})
	ok(r, err)
	for i := range 14 {
		put("/k", fmt.Sprint(i))
	}
	_, r, err = n.root.Grant(ctx, 7, 600, Once{})
	ok(r, err)
	r, err = n.Txn(ctx, scope.Txn{Success: []scope.Op{{Kind: scope.OpPut, Key: []byte("/leased"), Value: []byte("v"), Lease: 7}}}, Once{})
	ok(r, err)
	put("/gone", "1")
	r, err = n.Txn(ctx, scope.Txn{Success: []scope.Op{{Kind: scope.OpDelete, Key: []byte("/gone")}}}, Once{})
	ok(r, err)
	r, err = n.Naming(ctx, scope.Naming{Kind: scope.Bind, Key: []byte("/k"), To: []byte("/k2")}, Once{})
	ok(r, err)
	r, err = n.Naming(ctx, scope.Naming{Kind: scope.Move, Key: []byte("/k2"), To: []byte("/k3"), Until: aweigh.InstantOf(time.Now().Add(time.Hour))}, Once{})
	ok(r, err)
	r, err = n.Permit(ctx, scope.Access{Revision: 2, Users: []scope.User{{Name: "u", Since: 2}}}, Once{})
	ok(r, err)
	for i := range 3 {
		r, err = n.Txn(ctx, putTxn("/s/a", fmt.Sprint(i)), Once{})
		ok(r, err)
		if i == 0 { // closed; the others stay open
			if _, err := n.HandIn(ctx, []votes.MotionBallot{ballot(r.Mutation)}); err != nil {
				t.Fatal(err)
			}
			if _, err := n.Vote(ctx, r.Mutation[:], votes.Approve, ""); err != nil {
				t.Fatal(err)
			}
			if err := n.AwaitMotion(ctx, r.Mutation[:], func(Motion, scope.Head) error { return nil }); err != nil {
				t.Fatal(err)
			}
		}
	}
	r, err = n.Compact(ctx, n.root.LastHead().Revision-6, Once{})
	ok(r, err)
	put("/c/y", "2") // in the child
	put("/last", "1")
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	s := store.NewMem()
	if err := errors.Join(s.Commit(records(t, disk), false), disk.Close()); err != nil {
		t.Fatal(err)
	}
	return s, g
}

// records are all pairs of a store.
func records(t *testing.T, r kv.Reader) (all []kv.Op) {
	t.Helper()
	if err := r.Scan(nil, nil, false, func(k, v []byte) bool {
		all = append(all, kv.Set(bytes.Clone(k), bytes.Clone(v)))
		return true
	}); err != nil {
		t.Fatal(err)
	}
	return all
}

// kindOf names the kind of a record by its letters.
func kindOf(key []byte) string {
	switch {
	case key[0] == 's' && len(key) > 17 && key[17] == 'l':
		return "s" + string(key[17:19])
	case key[0] == 's' && len(key) > 17:
		return "s" + string(key[17])
	case (key[0] == 'n' || key[0] == 'b') && len(key) > 33:
		return string(key[0]) + string(key[33])
	}
	return string(key[0])
}

// TestEveryBentRecordIsFound: in a store that holds what a network made final, one record
// of each kind is bent, taken away, or added.
func TestEveryBentRecordIsFound(t *testing.T) {
	testshort.SkipUnlessLong(t)
	t.Parallel()
	s, g := full(t)
	rep, err := fsck.Store(s, g, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(rep.Scopes) != 2 || rep.Scopes[0].Epoch == 0 || rep.Scopes[1].Prefix != "/c/" || rep.Records == 0 {
		t.Fatalf("%+v", rep)
	}
	// What is not found, and why that harms nobody.
	hints := map[string]string{
		"p": "addresses of peers, who prove who they are",
	}
	// What may go missing: then it is as if it had never been said, or pruned.
	forgettable := map[string]bool{"g": true, "nc": true, "nt": true, "nl": true, "nm": true, "np": true, "nf": true}
	all := records(t, s)
	byKind := make(map[string][]kv.Op)
	for _, rec := range all {
		byKind[kindOf(rec.Key)] = append(byKind[kindOf(rec.Key)], rec)
	}
	for _, kind := range []string{
		"G", "g", "nb", "nh", "nf", "ne", "nu", "nt", "sM", "sN", "sO", "sa", "sb", "sc", "sd", "se", "sg", "sh", "si", "sk", "sle", "slh", "sm", "sn", "so", "sp", "sq", "sr", "st", "su", "sx", "sy", "sz",
	} {
		if len(byKind[kind]) == 0 {
			t.Errorf("the store has no record of kind %s: the test does not show what it says", kind)
		}
	}
	found := func(what string, ops ...kv.Op) {
		t.Helper()
		bent := store.NewMem()
		if err := errors.Join(bent.Commit(all, false), bent.Commit(ops, false)); err != nil {
			t.Fatal(err)
		}
		if _, err := fsck.Store(bent, g, nil); !errors.Is(err, fsck.ErrForged) && !errors.Is(err, fsck.ErrUnvouched) {
			t.Errorf("%s: the audit ends with %v", what, err)
		}
	}
	for kind, recs := range byKind {
		if hints[kind] != "" {
			continue
		}
		for _, rec := range []kv.Op{recs[0], recs[len(recs)/2], recs[len(recs)-1]}[:testshort.Cases(1, 3, 3)] {
			for _, at := range []int{0, len(rec.Value) / 2, len(rec.Value) - 1} {
				if at < 0 || at >= len(rec.Value) {
					found(fmt.Sprintf("kind %s, %x is not empty", kind, rec.Key), kv.Set(rec.Key, []byte{1}))
					continue
				}
				switch {
				case kind == "g" && len(rec.Value) == 8: // a mark of views, of which others remind (P9)
					continue
				case kind == "nh" && at == len(rec.Value)-1: // whether pruning may drop the block's content
					continue
				case kind == "nt" && at > 0: // why trust changed, which "aweigh trust verify" works out again
					continue
				}
				value := bytes.Clone(rec.Value)
				value[at] ^= 1
				found(fmt.Sprintf("kind %s, byte %d of %d of %x is bent", kind, at, len(value), rec.Key), kv.Set(rec.Key, value))
			}
			if !forgettable[kind] {
				found(fmt.Sprintf("kind %s, %x is missing", kind, rec.Key), kv.Del(rec.Key))
			}
			moved := bytes.Clone(rec.Key)
			moved[len(moved)-1] ^= 1
			if !slices.ContainsFunc(recs, func(o kv.Op) bool { return bytes.Equal(o.Key, moved) }) {
				found(fmt.Sprintf("kind %s, %x stands at another place as well", kind, rec.Key), kv.Set(moved, rec.Value))
			}
		}
	}
	id := g.Hash()
	for name, key := range map[string][]byte{"letter": machine.Record(id, 'Q'), "space": []byte("Q"), "scope": machine.Record(aweigh.ScopeID{1}, 'h'), "state": append([]byte("s"), bytes.Repeat([]byte{1}, 18)...)} {
		found("a record of an unknown "+name, kv.Set(key, []byte("x")))
	}
}

// TestForgedStateIsFound: a store that adds up by itself, with a block that no quorum
// signed, or that the keys of others did.
func TestForgedStateIsFound(t *testing.T) {
	s, g := full(t)
	id := g.Hash()
	state, err := scope.Open(s, id)
	if err != nil {
		t.Fatal(err)
	}
	mallory, err := votes.GenerateKey(votes.Ed25519, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	p := putTxn("/last", "mallory")
	bundle, err := scope.Sign(mallory, scope.MostLimits(), scope.Mutation{
		Scope: id, Class: scope.Write, Content: canon.Encode(p), Nonce: make([]byte, 8), ValidUntil: state.Head().Time.Add(time.Minute),
	})
	if err != nil {
		t.Fatal(err)
	}
	e, err := state.Epoch()
	if err != nil {
		t.Fatal(err)
	}
	h, _, err := state.Claim(scope.Header{Epoch: e.Number, View: state.Head().View + 1, Time: state.Head().Time.Add(time.Second)})
	if err != nil {
		t.Fatal(err)
	}
	b := scope.NewBlock(h, []*scope.CheckedBundle{bundle}, scope.Evidence{})
	res, err := state.Execute(b)
	if err != nil {
		t.Fatal(err)
	}
	undo, err := state.Undo(b.Hash(), res.Ops, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	at := h.Height
	ops := append(res.Ops,
		kv.Set(machine.KeyBlock(id, b.Hash()), b.Encode()), kv.Set(machine.KeyVouched(id), canon.Encode(machine.Vouched{Undo: &undo})),
		kv.Set(machine.KeyHeight(id, at), canon.Encode(machine.BlockStub{Block: b.Hash(), Time: b.Header.Time, Revision: res.Head.Revision})),
	)
	if res.Outcomes[0].Code != scope.Applied {
		t.Fatalf("the forged write: %s %s", res.Outcomes[0].Code, res.Outcomes[0].Reason)
	}
	certificate := func(by votes.PrivateKey, anchor aweigh.AnchorID) kv.Op {
		subject := quorum.Subject{Kind: quorum.Finalize, View: h.View, Block: b.Hash()}
		ballot := votes.Ballot{Format: votes.Format, Domain: e.Domain(), Subject: subject, Anchor: anchor}
		sig := by.Sign(votes.ContextBallot, ballot.SigningBytes())
		return kv.Set(machine.KeyFinality(id, at), canon.Encode(quorum.Certificate{Subject: subject, Signatures: []quorum.Signature{{Anchor: anchor, Bytes: sig}}}))
	}
	tests := map[string][]kv.Op{
		"no certificate":                     ops,
		"a certificate of another's key":     append(slices.Clone(ops), certificate(mallory, mallory.Public().ID())),
		"a certificate in the anchor's name": append(slices.Clone(ops), certificate(mallory, e.Roster.Anchors[0].Key.ID())),
	}
	for name, ops := range tests {
		forged := store.NewMem()
		if err := errors.Join(forged.Commit(records(t, s), false), forged.Commit(ops, false)); err != nil {
			t.Fatal(err)
		}
		if st, err := scope.Open(forged, id); err != nil || st.Height() != at {
			t.Fatalf("the forged store does not open: %v", err)
		}
		if _, err := fsck.Store(forged, g, nil); !errors.Is(err, fsck.ErrForged) {
			t.Errorf("%s: the audit ends with %v", name, err)
		}
	}
}
