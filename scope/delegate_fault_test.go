package scope

import (
	"errors"
	"testing"

	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/quorum"
)

// faulty fails the read after so many more.
type faulty struct {
	kv.Reader
	left int
}

var errDisk = errors.New("input/output error")

func (f *faulty) fails() bool {
	f.left--
	return f.left == 0
}

func (f *faulty) Get(k []byte) ([]byte, bool, error) {
	if f.fails() {
		return nil, false, errDisk
	}
	return f.Reader.Get(k)
}

func (f *faulty) Scan(from, to []byte, reverse bool, visit func(k, v []byte) bool) error {
	if f.fails() {
		return errDisk
	}
	return f.Reader.Scan(from, to, reverse, visit)
}

// failing executes a block again and again, with another read that fails each time, and
// gives what comes of it without.
func (r *realm) failing(t *testing.T, b *Block) *Result {
	t.Helper()
	for at := 1; ; at++ {
		disk := &faulty{Reader: r.r, left: 1 << 30}
		s, err := Open(disk, r.g.Hash())
		if err != nil {
			t.Fatal(err)
		}
		disk.left = at
		res, err := s.Execute(b)
		if disk.left > 0 {
			if err != nil {
				t.Fatal(err)
			}
			return res
		}
		if !errors.Is(err, errDisk) {
			t.Errorf("height %d: read %d fails, and the error is %v", b.Header.Height, at, err)
		}
	}
}

// TestDisksThatFailDecideNothing: a read that fails while a decision is executed must
// not become the decision's outcome: other nodes have another one.
func TestDisksThatFailDecideNothing(t *testing.T) {
	r := newRealm(t, nil)
	policy := r.g.Policy
	policy.EpochBlocks++
	r.one(r.put("/b/1", "one"))
	r.one(r.naming(Naming{Kind: Bind, Key: []byte("/b/1"), To: []byte("/b/one")}))
	r.turn()
	away := r.decision("/b/", quorum.BFT, "a", "b", "c", "d")
	for _, by := range []struct {
		name string
		d    Decision
	}{{"a", Decision{Kind: SetPolicy, Policy: &policy}}, {"a", away}, {"b", away}, {"c", away}} {
		b, err := Sign(r.names[by.name], r.g.Policy.Limits, r.mutation(Govern, by.d))
		if err != nil {
			t.Fatal(err)
		}
		block := r.next(nil, nil, b)
		if res := r.failing(t, block); res.Outcomes[0].Code != Applied {
			t.Fatalf("%s: %+v", by.d.Kind, res.Outcomes)
		}
		r.add(block)
	}
	for founded := 0; founded == 0; {
		block := r.next(r.ballots(1), nil)
		founded = len(r.failing(t, block).Founded)
		r.add(block)
	}
}
