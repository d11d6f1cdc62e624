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

// TestDisksThatFailDecideNothing: a read that fails while a decision is executed says
// nothing of the decision. It must not become an outcome, which others do not see.
func TestDisksThatFailDecideNothing(t *testing.T) {
	r := newRealm(t, nil)
	policy := r.g.Policy
	policy.EpochBlocks++
	for name, d := range map[string]Decision{"delegate": r.decision("/b/", quorum.BFT, "a", "b", "c", "d"), "policy": {Kind: SetPolicy, Policy: &policy}} {
		m := r.mutation(Govern, d)
		b, err := Sign(r.names["a"], r.g.Policy.Limits, m)
		if err != nil {
			t.Fatal(err)
		}
		block := r.next(nil, nil, b)
		for at, failed := 1, true; failed; at++ {
			disk := &faulty{Reader: r.r, left: 1 << 30}
			s, err := Open(disk, r.g.Hash())
			if err != nil {
				t.Fatal(err)
			}
			disk.left = at
			res, err := s.Execute(block)
			failed = disk.left <= 0
			switch {
			case failed && !errors.Is(err, errDisk):
				t.Errorf("%s: read %d fails, and the error is %v; outcomes %+v", name, at, err, res.Outcomes)
			case !failed && (err != nil || res.Outcomes[0].Code != Applied):
				t.Fatalf("%s: %v, %+v", name, err, res)
			}
		}
	}
}
