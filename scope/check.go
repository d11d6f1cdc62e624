package scope

import "fmt"

const (
	// maxTxnFactor times Limits.TxnOps is how many operations a transaction may
	// have, those of inner transactions included.
	maxTxnFactor = 8
)

// Check reports whether a transaction is well-formed and within limits, by etcd's
// rules (checkTxnRequest and checkIntervals of its v3rpc package): no branch puts
// one key twice, or puts a key that it deletes as well, where the branches of an
// inner transaction exclude each other. As in etcd, a deletion "to the end of the
// key space" is not held against puts. Fields that an operation's kind does not
// use must be absent, so that one meaning has one encoding.
func (t *Txn) Check(lim Limits) error {
	c := txnCheck{lim: lim}
	if err := c.txn(t, lim.TxnOps, 0); err != nil {
		return err
	}
	if most := maxTxnFactor * lim.TxnOps; c.ops > most {
		return fmt.Errorf("%w: %d with those of inner transactions, at most %d are taken (limits.txn_ops is %d)", ErrTooManyOps, c.ops, most, lim.TxnOps)
	}
	if err := t.checkReach(c.ops); err != nil {
		return err
	}
	if c.keeps && c.toEnd { // the put might find nothing to keep when its turn comes
		return ErrDuplicateKey
	}
	for _, branch := range [][]Op{t.Success, t.Failure} {
		if len(branch) == 1 && branch[0].Kind != OpTxn {
			continue // the usual case: nothing to clash with
		}
		if _, err := touchedBy(branch); err != nil {
			return err
		}
	}
	return nil
}

type txnCheck struct {
	lim   Limits
	ops   int
	keeps bool // some put keeps a value or a lease
	toEnd bool // some deletion goes to the end of the key space
}

func (c *txnCheck) txn(t *Txn, budget, depth int) error {
	if depth > c.lim.TxnDepth {
		return c.lim.TooDeep()
	}
	most := max(len(t.Compare), len(t.Success), len(t.Failure))
	if most > budget {
		return fmt.Errorf("%w: %d, at most %d are taken here (limits.txn_ops is %d)", ErrTooManyOps, most, budget, c.lim.TxnOps)
	}
	c.ops += len(t.Compare) + len(t.Success) + len(t.Failure)
	for i := range t.Compare {
		if err := t.Compare[i].check(c.lim); err != nil {
			return err
		}
	}
	for _, branch := range [][]Op{t.Success, t.Failure} {
		for i := range branch {
			op := &branch[i]
			if err := op.check(c.lim); err != nil {
				return err
			}
			c.keeps = c.keeps || op.IgnoreValue || op.IgnoreLease
			c.toEnd = c.toEnd || op.Kind == OpDelete && ToEnd(op.End)
			if op.Kind == OpTxn {
				if len(op.Txn.Reach) > 0 {
					return fmt.Errorf("a transaction within another, with a reach of its own")
				}
				if err := c.txn(op.Txn, budget-most, depth+1); err != nil {
					return err
				}
			}
		}
	}
	return t.checkMerge(depth)
}

func (c *Compare) check(lim Limits) error {
	if c.Target < OnVersion || c.Target > OnLease || c.Relation < Equal || c.Relation > NotEqual {
		return fmt.Errorf("a compare of unknown kind %d, %d", c.Target, c.Relation)
	}
	if c.Target == OnValue && c.Number != 0 || c.Target != OnValue && len(c.Value) > 0 {
		return fmt.Errorf("a compare with content of another kind")
	}
	return lim.checkRange(c.Key, c.End)
}

// check checks one operation, but not the transaction within it.
func (op *Op) check(lim Limits) error {
	isPut := op.Kind == OpPut
	foreign := !isPut && (len(op.Value) > 0 || op.Lease != 0 || op.IgnoreValue || op.IgnoreLease) ||
		!isPut && op.Kind != OpDelete && op.Prev ||
		op.Kind != OpRange && op.Range != nil ||
		(op.Kind == OpTxn) != (op.Txn != nil) ||
		op.Kind == OpTxn && len(op.Key)+len(op.End) > 0 || (isPut || op.Kind == OpMerge) && len(op.End) > 0
	switch {
	case op.Kind < OpRange || op.Kind > OpMerge:
		return fmt.Errorf("unknown operation %d", uint8(op.Kind))
	case foreign:
		return fmt.Errorf("an operation with content of another kind")
	case op.Kind == OpTxn:
		return nil
	case op.Range != nil && (op.Range.Sort > ByValue || op.Range.Order > Descending):
		return ErrSortOption
	case !isPut:
		return lim.checkRange(op.Key, op.End)
	case op.IgnoreValue && len(op.Value) > 0:
		return ErrValueProvided
	case op.IgnoreLease && op.Lease != 0:
		return ErrLeaseProvided
	case len(op.Value) > lim.ValueBytes:
		return fmt.Errorf("a value of %d bytes, at most %d are taken; keep large content elsewhere and store its digest", len(op.Value), lim.ValueBytes)
	}
	return lim.checkKey(op.Key)
}

// touched is the keys that a branch may put, and the operations by which it may
// delete, those of inner transactions included.
type touched struct {
	puts map[string]bool
	keys []string // of puts
	dels []*Op
}

func (t *touched) deletes(key string) bool {
	for _, op := range t.dels {
		if !ToEnd(op.End) && Within([]byte(key), op.Key, op.End) {
			return true
		}
	}
	return false
}

// put adds a key. The alternative, if any, is a branch that excludes the one
// that puts it.
func (t *touched) put(key string, alternative *touched) error {
	if t.deletes(key) || t.puts[key] && (alternative == nil || !alternative.puts[key]) {
		return ErrDuplicateKey
	}
	if !t.puts[key] {
		if t.puts == nil {
			t.puts = make(map[string]bool)
		}
		t.puts[key] = true
		t.keys = append(t.keys, key)
	}
	return nil
}

// touchedBy follows checkIntervals: first the deletions of this level, then the
// inner transactions one after another, then the puts of this level.
func touchedBy(branch []Op) (t touched, err error) {
	for i := range branch {
		if branch[i].Kind == OpDelete {
			t.dels = append(t.dels, &branch[i])
		}
	}
	for i := range branch {
		if branch[i].Kind != OpTxn {
			continue
		}
		yes, err := touchedBy(branch[i].Txn.Success)
		if err != nil {
			return t, err
		}
		no, err := touchedBy(branch[i].Txn.Failure)
		if err != nil {
			return t, err
		}
		for _, key := range yes.keys {
			if err := t.put(key, nil); err != nil {
				return t, err
			}
		}
		for _, key := range no.keys {
			if err := t.put(key, &yes); err != nil {
				return t, err
			}
		}
		t.dels = append(append(t.dels, yes.dels...), no.dels...)
	}
	for i := range branch {
		if branch[i].Kind == OpPut {
			if err := t.put(string(branch[i].Key), nil); err != nil {
				return t, err
			}
		}
	}
	return t, nil
}
