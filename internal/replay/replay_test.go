package replay_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/internal/replay"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/node"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/store"
	"github.com/aweigh/aweigh/store/diskstore"
	"github.com/aweigh/aweigh/trust"
	"github.com/aweigh/aweigh/votes"
)

// lived is the store of an anchor that has decided alone for some epochs.
func lived(t *testing.T) (*store.Mem, aweigh.ScopeID) {
	t.Helper()
	identity, err := votes.GenerateKey(votes.Ed25519, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	anchor, err := votes.GenerateKey(votes.Ed25519, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	peer, err := machine.PeerOf(identity)
	if err != nil {
		t.Fatal(err)
	}
	policy := scope.OpenPolicy(quorum.BFT)
	policy.EpochBlocks, policy.Trust.Whole = 8, 8
	g, err := machine.NewGenesis("n", aweigh.InstantOf(time.Now()), policy, machine.Founder{Name: "solo", Key: anchor.Public(), Peer: peer})
	if err != nil {
		t.Fatal(err)
	}
	disk, err := diskstore.Open("data", diskstore.Options{FS: vfs.NewMem()}) // a Mem is for one goroutine
	if err != nil {
		t.Fatal(err)
	}
	n, err := node.New(node.Config{Genesis: g, Identity: identity, Anchor: &anchor, Store: disk, Listen: []string{"/ip4/127.0.0.1/tcp/0"}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	ended := make(chan error, 1)
	go func() { ended <- n.Run(ctx) }()
	for i := range 40 {
		put := scope.Op{Kind: scope.OpPut, Key: []byte("/k"), Value: fmt.Append(nil, i)}
		if _, err := n.Txn(ctx, scope.Txn{Success: []scope.Op{put}}, node.Once{}); err != nil {
			t.Fatal(err)
		}
	}
	policy.Trust.Floor = 50
	if _, err := n.Root().Govern(ctx, scope.Decision{Kind: scope.SetPolicy, Policy: &policy}, node.Once{}); err != nil {
		t.Fatal(err)
	}
	if _, err := n.Txn(ctx, scope.Txn{}, node.Once{}); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	s := store.NewMem()
	var all []kv.Op
	err = disk.Scan(nil, nil, false, func(k, v []byte) bool {
		all = append(all, kv.Set(bytes.Clone(k), bytes.Clone(v)))
		return true
	})
	if err := errors.Join(err, s.Commit(all, true), disk.Close()); err != nil || len(all) == 0 {
		t.Fatal(err)
	}
	return s, g.Hash()
}

// again replays a store.
func again(from kv.Reader) (replay.Report, error) {
	return replay.Run(from, store.NewMem(), nil)
}

func TestHistoryAddsUp(t *testing.T) {
	s, id := lived(t)
	r, err := again(s)
	if err != nil {
		t.Fatal(err)
	}
	stored, err := scope.Open(s, id)
	if err != nil {
		t.Fatal(err)
	}
	if r.Head != stored.Head() || r.Epoch.Number < 5 || r.Certificates != int(r.Epoch.Number)+1 || r.Changes < 5 || r.Proven != r.Head.Height {
		t.Errorf("%+v", r)
	}
	if r.Epoch.Policy.Trust.Floor != 50 {
		t.Errorf("the last epoch has a floor of %d", r.Epoch.Policy.Trust.Floor)
	}
}

// altered shows a store in which one record is another.
type altered struct {
	kv.Reader
	key, value []byte
}

func (a altered) Get(k []byte) ([]byte, bool, error) {
	if string(k) == string(a.key) {
		return a.value, true, nil
	}
	return a.Reader.Get(k)
}

func (a altered) Scan(from, to []byte, reverse bool, visit func(k, v []byte) bool) error {
	return a.Reader.Scan(from, to, reverse, func(k, v []byte) bool {
		if string(k) == string(a.key) {
			v = a.value
		}
		return visit(k, v)
	})
}

// TestLiesInTheRecordShow: well-formed records of rosters and trust are compared
// with the results of the store's blocks.
func TestLiesInTheRecordShow(t *testing.T) {
	s, id := lived(t)
	record := func(letter byte) []byte { return append(append([]byte{'n'}, id[:]...), letter) }
	last := func(letter byte) (key, value []byte) {
		space := record(letter)
		err := s.Scan(space, kv.PrefixEnd(space), true, func(k, v []byte) bool {
			key, value = append([]byte(nil), k...), append([]byte(nil), v...)
			return false
		})
		if err != nil || key == nil {
			t.Fatalf("no record %c: %v", letter, err)
		}
		return key, value
	}
	tests := map[string]func() altered{
		"a heavier roster": func() altered {
			key, raw := last('e')
			var h scope.Handover
			if err := canon.Decode(raw, &h); err != nil {
				t.Fatal(err)
			}
			h.Terms.Weights[0]++
			return altered{s, key, canon.Encode(h)}
		},
		"a certificate without signatures": func() altered {
			key, raw := last('e')
			var h scope.Handover
			if err := canon.Decode(raw, &h); err != nil {
				t.Fatal(err)
			}
			h.Final.Certificate.Signatures = nil
			return altered{s, key, canon.Encode(h)}
		},
		"a better score": func() altered {
			key, raw := last('t')
			var c trust.Change
			if err := canon.Decode(raw, &c); err != nil {
				t.Fatal(err)
			}
			c.After++
			return altered{s, key, canon.Encode(c)}
		},
		"a finality of another block": func() altered {
			key, raw := last('f')
			var c quorum.Certificate
			if err := canon.Decode(raw, &c); err != nil {
				t.Fatal(err)
			}
			c.Signatures[0].Bytes[0] ^= 1
			return altered{s, key, canon.Encode(c)}
		},
		"another block": func() altered {
			key, _ := last('h')
			at := aweigh.Height(binary.BigEndian.Uint64(key[len(key)-8:]))
			b, err := machine.History{Reader: s, Scope: id}.Block(at)
			if err != nil {
				t.Fatal(err)
			}
			hash := b.Hash()
			key = append(record('b'), hash[:]...)
			h := b.Header
			h.State[0] ^= 1
			return altered{s, key, scope.NewBlock(h, b.Bundles, b.Evidence).Encode()}
		},
	}
	for name, alter := range tests {
		t.Run(name, func(t *testing.T) {
			if _, err := again(alter()); !errors.Is(err, replay.ErrMismatch) {
				t.Errorf("the replay ends with %v", err)
			}
		})
	}
}
