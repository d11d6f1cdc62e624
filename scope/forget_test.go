package scope

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/aweigh/aweigh/kv"
)

// TestVoidReceiptsGoAtOneTime: a node that follows the chain and one that has
// just started forget the same, block by block, through minutes in which there is
// much to forget, little and nothing.
func TestVoidReceiptsGoAtOneTime(t *testing.T) {
	w := newWorld(t)
	w.skip = true
	follows, forgotten := w.state, 0
	for i := range 60 {
		w.now = w.now.Add(time.Duration(1+i%5) * 7 * time.Second)
		var muts []Mutation
		if i < 40 {
			for j := range 1 + i*31%400 {
				m := w.put(fmt.Sprint(j), "v")
				m.ValidUntil = w.now.Add(time.Duration(j%4) * 40 * time.Second)
				muts = append(muts, m)
			}
		}
		b := w.block(w.sign(muts...))
		followed, err := follows.Execute(b)
		if err != nil {
			t.Fatal(err)
		}
		started := w.execute(b)
		if !reflect.DeepEqual(followed.Ops, started.Ops) || followed.Head != started.Head {
			t.Fatalf("block %d: a node that follows writes %d ops, one that just started %d", b.Header.Height, len(followed.Ops), len(started.Ops))
		}
		for _, op := range started.Ops {
			if op.Delete {
				forgotten++
			}
		}
		follows = followed.State(w.r)
	}
	left := 0
	prefix := w.state.space.at(atReceipt)
	if err := w.r.Scan(prefix, kv.PrefixEnd(prefix), false, func(_, _ []byte) bool { left++; return true }); err != nil {
		t.Fatal(err)
	}
	if left > 0 || forgotten == 0 {
		t.Fatalf("%d receipts are left, %d were forgotten", left, forgotten)
	}
}
