package hostile

import (
	"testing"
	"time"

	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/scope"
)

// bundle is a frame of n mutations with one content.
func (s *unlisted) bundle(t testing.TB, n int, of scope.Txn) []byte {
	var all []scope.Mutation
	for range n {
		all = append(all, s.mutation(of))
	}
	return s.sign(t, all...)
}

// TestUnlistedAuthorsSpendTheirOwnShare: an unlisted author without any right has its mutations look
// at as much as one may. Honest clients of all nodes compare and swap meanwhile, and
// each of them succeeds.
func TestUnlistedAuthorsSpendTheirOwnShare(t *testing.T) {
	testshort.SkipUnlessLong(t)
	x := newNetwork(t, 4)
	x.fill(t, "/dear/", 4900)
	calm := x.swaps(5)
	dear := scope.Compare{Target: scope.OnVersion, Relation: scope.Greater, Key: []byte("/dear/"), End: []byte("/dear0")}
	wide := dear
	wide.End = []byte("/dear/000900")
	for _, a := range []struct {
		name string
		n    int // mutations of a bundle
		txn  scope.Txn
	}{
		{"expensive compares", 1, scope.Txn{Compare: []scope.Compare{dear, dear, dear, dear}}},
		{"bundles of many mutations", 64, scope.Txn{Compare: []scope.Compare{wide}}},
	} {
		t.Run(a.name, func(t *testing.T) {
			s := x.unlisted(t)
			stop := x.pour(t, 30, func() []byte { return s.bundle(t, a.n, a.txn) })
			time.Sleep(time.Second) // so that bundles wait already
			l := x.swaps(25 * longer())
			sent := stop()
			t.Logf("%d bundles; %d of %d swaps succeed, in %v in the median, in %v without; the last failure: %s", sent, l.done, l.done+l.failed, l.median, calm.median, l.why)
			if l.failed > 0 || l.done != 25*longer()*len(x.daemons) {
				t.Errorf("%d of %d swaps of honest clients succeed: %s", l.done, 25*longer()*len(x.daemons), l.why)
			}
			if sent == 0 {
				t.Error("no bundle of the unlisted author was taken in")
			}
		})
	}
	x.commits(t)
}
