package api_test

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/api"
	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
)

// ballots asks for ballots, and gives all parts of the answer together.
func (w *world) ballots(req *aweighv1.BallotsRequest) (names, bundle []byte, err error) {
	stream, err := w.Ballots(w.ctx, connect.NewRequest(req))
	if err != nil {
		return nil, nil, err
	}
	for stream.Receive() {
		names, bundle = append(names, stream.Msg().Names...), append(bundle, stream.Msg().Bundle...)
	}
	return names, bundle, stream.Err()
}

// TestBallotsAreGiven: all ballots of the box, more than one part of an answer holds, or
// the wanted ones; a request for an invalid name is refused before anything is read.
func TestBallotsAreGiven(t *testing.T) {
	p := scope.OpenPolicy(quorum.BFT)
	p.Approvals = []scope.Approval{{Matter: scope.Changes, Prefix: []byte("/s/"), Num: 1, Den: 2, Window: time.Hour}}
	var keys []votes.PrivateKey
	for i := range 3 {
		key, err := votes.GenerateKey(votes.Ed25519, rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, key)
		p.Approvals[0].Approvers = append(p.Approvals[0].Approvers, scope.Approver{Name: fmt.Sprint("approver ", i), Key: key.Public(), Share: 10_000})
	}
	w := newWorldUnder(t, p)
	all := make(map[aweigh.Hash][]byte)
	var in []byte
	for _, key := range keys {
		for i := range 400 {
			vote := votes.MotionVote{
				Network: w.genesis.Hash(), Scope: w.genesis.Hash(), Choice: votes.Approve,
				Motion: aweigh.Sum(binary.BigEndian.AppendUint64(nil, uint64(i))),
			}
			b, err := votes.SignMotionBallot(key.Signer(), vote, strings.Repeat("c", 1000))
			if err != nil {
				t.Fatal(err)
			}
			all[b.ID()] = b.Encode()
			in = append(in, b.Encode()...)
		}
	}
	resp, err := w.HandIn(w.ctx, connect.NewRequest(&aweighv1.HandInRequest{Bundle: in}))
	if err != nil || resp.Msg.Added != uint64(len(all)) {
		t.Fatalf("%v, %v", err, resp)
	}

	var names, bundle []byte
	var several sync.WaitGroup
	for range 8 { // they take turns
		several.Go(func() {
			got, _, err := w.ballots(&aweighv1.BallotsRequest{Inventory: true})
			if err != nil || len(got) != 32*len(all) {
				t.Errorf("%d bytes of names, %v", len(got), err)
			}
		})
	}
	several.Wait()
	if names, _, err = w.ballots(&aweighv1.BallotsRequest{Inventory: true}); err != nil {
		t.Fatal(err)
	}
	if _, bundle, err = w.ballots(&aweighv1.BallotsRequest{}); err != nil {
		t.Fatal(err)
	}
	var listed [][]byte
	for name := range slices.Chunk(names, 32) {
		if raw := all[aweigh.Hash(name)]; len(raw) == 0 || !bytes.HasPrefix(bundle, raw) {
			t.Fatalf("%x is not given in its turn", name)
		} else {
			bundle = bundle[len(raw):]
		}
		listed = append(listed, name)
	}
	if len(listed) != len(all) || len(bundle) > 0 || !slices.IsSortedFunc(listed, bytes.Compare) {
		t.Fatalf("%d names, %d bytes too many", len(listed), len(bundle))
	}

	want := [][]byte{listed[7], bytes.Repeat([]byte{1}, 32), listed[3]}
	names, _, err = w.ballots(&aweighv1.BallotsRequest{Want: want, Inventory: true})
	if err != nil || !bytes.Equal(names, slices.Concat(want[0], want[2])) {
		t.Errorf("of three names, one unknown, it has %x, %v", names, err)
	}
	_, bundle, err = w.ballots(&aweighv1.BallotsRequest{Want: want})
	if err != nil || !bytes.Equal(bundle, slices.Concat(all[aweigh.Hash(want[0])], all[aweigh.Hash(want[2])])) {
		t.Errorf("%d bytes of two ballots, %v", len(bundle), err)
	}
	large := slices.Concat(listed, [][]byte{{1, 2, 3}})
	if _, bundle, err = w.ballots(&aweighv1.BallotsRequest{Want: large}); reasonOf(t, err) != api.Invalid || len(bundle) > 0 {
		t.Errorf("a name of three bytes: %v, after %d bytes", err, len(bundle))
	}
	if _, _, err = w.ballots(&aweighv1.BallotsRequest{Want: slices.Repeat(want, 4000)}); reasonOf(t, err) != api.Invalid {
		t.Errorf("12,000 names: %v", err)
	}
}
