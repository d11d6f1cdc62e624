package hostile

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/aweigh/aweigh/node"
	"github.com/aweigh/aweigh/scope"
)

// longer is 1, and 8 if attacks shall last longer.
func longer() int {
	if os.Getenv(floodsEnv) != "" {
		return 8
	}
	return 1
}

// fill writes n keys below a prefix.
func (x *net4) fill(t testing.TB, prefix string, n int) {
	t.Helper()
	for from := 0; from < n; from += 100 {
		var txn scope.Txn
		for i := from; i < min(n, from+100); i++ {
			txn.Success = append(txn.Success, scope.Op{Kind: scope.OpPut, Key: fmt.Appendf(nil, "%s%06d", prefix, i), Value: []byte("v")})
		}
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		r, err := x.node(0).Txn(ctx, txn, node.Once{})
		cancel()
		if err != nil || r.Code != scope.Applied {
			t.Fatalf("filling %s: %+v, %v", prefix, r, err)
		}
	}
}

// lives is what came of what honest clients asked.
type lives struct {
	done, failed int
	why          string // of the last that failed
	median       time.Duration
}

// swaps has a client at each node compare and put n times, each as soon as the one
// before is answered.
func (x *net4) swaps(n int) (l lives) {
	var mu sync.Mutex
	var took []time.Duration
	var clients sync.WaitGroup
	for i := range x.daemons {
		clients.Go(func() {
			key := fmt.Appendf(nil, "/swap/%d/%d", i, x.written.Add(1))
			for version := range int64(n) {
				txn := scope.Txn{
					Compare: []scope.Compare{{Target: scope.OnVersion, Relation: scope.Equal, Key: key, Number: version}},
					Success: []scope.Op{{Kind: scope.OpPut, Key: key, Value: []byte("v")}},
				}
				ctx, cancel := context.WithTimeout(context.Background(), patience)
				began := time.Now()
				r, err := x.node(i).Txn(ctx, txn, node.Once{})
				cancel()
				mu.Lock()
				if took = append(took, time.Since(began)); err == nil && r.Code == scope.Applied && r.Succeeded {
					l.done++
				} else {
					l.failed++
					l.why = fmt.Sprintf("%v, code %v, %s", err, r.Code, r.Reason)
				}
				mu.Unlock()
				if err != nil || r.Code != scope.Applied {
					return // the versions that it waits for do not come
				}
			}
		})
	}
	clients.Wait()
	slices.Sort(took)
	l.median = took[len(took)/2].Round(time.Millisecond)
	return l
}
