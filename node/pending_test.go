package node

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/node/machine"
)

// TestUndecidedSaysWhatIsOnDisk (P35): a client without a quorum is told that its write
// is on disk if it is, and only then.
func TestUndecidedSaysWhatIsOnDisk(t *testing.T) {
	testshort.Skip(t)
	t.Parallel()
	a := newAnchorage(t)
	a.start(0, vfs.NewMem())
	n := a.running[0]
	onDisk := func() (count int) {
		all := machine.Record(n.root.id, 'p')
		if err := n.store.Scan(all, kv.PrefixEnd(all), false, func(_, _ []byte) bool { count++; return true }); err != nil {
			t.Fatal(err)
		}
		return count
	}
	once := n.root.filled(Once{})
	for begin := time.Now(); ; {
		before := onDisk()
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		_, err := n.Txn(ctx, putTxn("/k", "v"), once)
		cancel()
		var u *UndecidedError
		if !errors.As(err, &u) {
			t.Fatal(err)
		}
		if u.Kept && onDisk() == 0 {
			t.Fatal("it says that it is on disk, and is not")
		}
		if u.Kept {
			break
		}
		if before > 0 && time.Since(begin) > 10*machine.KeepAfter { // the machine may be too busy to say, but not for ever
			t.Fatal("it is on disk, and does not say so")
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	_, err := n.Txn(ctx, putTxn("/other", "v"), Once{})
	if u := new(UndecidedError); !errors.As(err, &u) || u.Kept {
		t.Errorf("of another write it says %v", err)
	}
}
