package scope

import (
	"fmt"
	"math"
	"time"
)

// Limits bound what a scope takes. All are enforced on input before any work
// is done; DefaultLimits are those of docs/protocol.md.
type Limits struct {
	_                  struct{} `cbor:",toarray"`
	KeyBytes           int
	ValueBytes         int
	MutationBytes      int // of one mutation's encoding
	BundleBytes        int // of one bundle's encoding
	BlockBytes         int // of the encodings of a block's bundles together
	BlockMutations     int
	TxnOps             int // compares, or operations of one branch; see Txn.Check
	JustificationBytes int
	Drift              time.Duration // how far a block's time may run ahead of a clock; at most a second, see outlasts
	ValidFor           time.Duration // how far ahead of a block's time ValidUntil may lie; see Pending
	Anchors            int           // in a roster
	ScopeBytes         int64         // of keys (Head.Bytes), from which on puts are refused; 0: any number
	TTL                time.Duration // for which a node without the scope may reuse its anchors' answers; 0: not at all
	Rate               int64         // changes a second that a node takes of its own clients, in writes, names and actions; 0: any number
	TxnDepth           int           // levels of transactions within a transaction; see Txn.Check
	BlockCost          int64         // that the bundles of a block declare together, in the units of CheckedBundle.Cost
	Pending            time.Duration // the same for patient mutations, if this is more than ValidFor
}

// Patience is how far ahead of a block's time the ValidUntil of a patient mutation may lie, or of another one.
func (l Limits) Patience(patient bool) time.Duration {
	if patient {
		return max(l.ValidFor, l.Pending)
	}
	return l.ValidFor
}

// bringOverhead is how many bytes of a mutation bring no content: its envelope and signature.
const bringOverhead = 16 << 10

// BringBytes is how many bytes of content a mutation has room for by which a scope comes home (Bringing).
func (l Limits) BringBytes() int { return l.MutationBytes - bringOverhead }

// DefaultLimits are the limits of a scope whose policy names none.
func DefaultLimits() Limits {
	return Limits{
		KeyBytes:           1024,
		ValueBytes:         3 << 19, // 1.5 MiB
		MutationBytes:      2 << 20,
		BundleBytes:        4 << 20,
		BlockBytes:         4 << 20,
		BlockMutations:     10_000,
		TxnOps:             128,
		JustificationBytes: 1024,
		Drift:              500 * time.Millisecond,
		ValidFor:           10 * time.Minute,
		Anchors:            128,
		ScopeBytes:         8 << 30, // the most that etcd advises
		TTL:                5 * time.Second,
		TxnDepth:           3,
		BlockCost:          2_000_000,
	}
}

// What no policy may exceed: a block must fit into a frame of 8 MiB and into
// what package canon decodes, and receipts are kept until ValidUntil. Beside most of them stands a lineage entry,
// which is larger and stays for good; bundles that exceeded what they declare leave a receipt alone.
const (
	mostBlockBytes     = 6 << 20
	mostBlockMutations = 100_000
	mostTxnOps         = 10_000
	mostTxnDepth       = 8 // canon.MaxLevels takes one more
	mostPeriod         = 24 * time.Hour
	mostPending        = 90 * 24 * time.Hour
	mostAnchors        = 4096
	mostBlockCost      = 100_000_000
	leastBlockCost     = 100_000 // any decision, and the smallest transactions, fit into it

	// mostDrift is half of the shortest lease. The time of a scope is as good as
	// the clocks of its anchors, and with a larger bound a leader could end a lease early.
	mostDrift = MinLeaseTTL * time.Second / driftFactor
	// Every period that a scope's time ends lasts at least driftFactor times the drift bound.
	driftFactor = 2
)

// MostLimits are limits that hold for whatever was within a policy's limits once:
// for reading one's own store.
func MostLimits() Limits {
	return Limits{
		KeyBytes: mostBlockBytes, ValueBytes: mostBlockBytes, JustificationBytes: mostBlockBytes, MutationBytes: mostBlockBytes,
		BundleBytes: mostBlockBytes, BlockBytes: mostBlockBytes, BlockMutations: mostBlockMutations, TxnOps: mostTxnOps,
		Drift: mostDrift, ValidFor: mostPeriod, Anchors: mostAnchors, TTL: mostPeriod, TxnDepth: mostTxnDepth,
		BlockCost: mostBlockCost, Pending: mostPending,
	}
}

// limit is a limit that is a number, with its bounds.
type limit struct {
	name               string
	value, least, most int64
}

// bound names the limit that is the upper bound of another one.
func (b limit) bound() string {
	switch b.name {
	case "key_bytes", "value_bytes", "justification_bytes":
		return ", which is limits.mutation_bytes"
	case "mutation_bytes":
		return ", which is limits.bundle_bytes"
	case "bundle_bytes":
		return ", which is limits.block_bytes"
	}
	return ""
}

// check reports whether a policy may have these limits. Errors wrap ErrInvalid.
func (l Limits) check() error {
	for _, b := range []limit{
		{"scope_bytes", l.ScopeBytes, 0, math.MaxInt64},
		{"rate", l.Rate, 0, math.MaxInt64},
		{"block_cost", l.BlockCost, leastBlockCost, mostBlockCost},
		{"key_bytes", int64(l.KeyBytes), 1, int64(l.MutationBytes)},
		{"value_bytes", int64(l.ValueBytes), 1, int64(l.MutationBytes)},
		{"justification_bytes", int64(l.JustificationBytes), 1, int64(l.MutationBytes)},
		{"mutation_bytes", int64(l.MutationBytes), 1, int64(l.BundleBytes)},
		{"bundle_bytes", int64(l.BundleBytes), 1, int64(l.BlockBytes)},
		{"block_bytes", int64(l.BlockBytes), 1, mostBlockBytes},
		{"block_mutations", int64(l.BlockMutations), 1, mostBlockMutations},
		{"txn_ops", int64(l.TxnOps), 1, mostTxnOps},
		{"txn_depth", int64(l.TxnDepth), 1, mostTxnDepth},
		{"anchors", int64(l.Anchors), 1, mostAnchors},
	} {
		if b.value < b.least || b.value > b.most {
			return fmt.Errorf("%w: limits.%s is %d; it must lie between %d and %d%s", ErrInvalid, b.name, b.value, b.least, b.most, b.bound())
		}
	}
	for _, b := range []struct {
		name               string
		value, least, most time.Duration
	}{
		{"ttl", l.TTL, 0, mostPeriod},
		{"drift", l.Drift, 1, mostDrift},
		{"valid_for", l.ValidFor, 1, mostPeriod},
		{"pending", l.Pending, 0, mostPending},
	} {
		if b.value < b.least || b.value > b.most {
			return fmt.Errorf("%w: limits.%s is %v; it must lie between %v and %v", ErrInvalid, b.name, b.value, b.least, b.most)
		}
	}
	return l.outlasts("mutations that are valid for at most", l.ValidFor)
}

// outlasts reports why the drift bound is too large for a period that a scope's time ends. A duration of 0 is
// none.
func (l Limits) outlasts(what string, d time.Duration) error {
	if d != 0 && d < driftFactor*l.Drift {
		return fmt.Errorf("%w: limits.drift is %v, too large for %s %v; the least is %d times the drift", ErrInvalid, l.Drift, what, d, driftFactor)
	}
	return nil
}

// TooDeep is the error for transactions within a transaction on more levels than TxnDepth. etcd bounds them by the
// operations alone that each level leaves to the next.
func (l Limits) TooDeep() error {
	return fmt.Errorf("transactions nested deeper than %d, which is the policy's limits.txn_depth", l.TxnDepth)
}

func (l Limits) checkKey(key []byte) error {
	if len(key) == 0 {
		return ErrEmptyKey
	}
	if len(key) > l.KeyBytes {
		return fmt.Errorf("a key of %d bytes, at most %d are taken", len(key), l.KeyBytes)
	}
	return nil
}

// checkRange takes bounds that are one byte longer than a key can be: the first
// key after another is that key with a zero byte.
func (l Limits) checkRange(key, end []byte) error {
	if len(key) == 0 {
		return ErrEmptyKey
	}
	if n := max(len(key), len(end)); n > l.KeyBytes+1 {
		return fmt.Errorf("a bound of %d bytes on keys, at most %d are taken", n, l.KeyBytes+1)
	}
	return nil
}
