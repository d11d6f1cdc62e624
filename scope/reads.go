package scope

// Reads visits the ranges of keys, in the sense of Op, whose content the outcome of a mutation shows, until visit
// returns false: those that it compares, reads and merges, and those whose content before the change it asks for. That
// a key exists can also be learned by a change of it, and is not counted.
func (m *CheckedMutation) Reads(visit func(key, end []byte) bool) bool {
	return m.Txn == nil || m.Txn.reads(visit)
}

func (t *Txn) reads(visit func(key, end []byte) bool) bool {
	for i := range t.Compare {
		if c := &t.Compare[i]; !visit(c.Key, c.End) {
			return false
		}
	}
	for _, branch := range [][]Op{t.Success, t.Failure} {
		for i := range branch {
			switch op := &branch[i]; {
			case op.Kind == OpTxn:
				if !op.Txn.reads(visit) {
					return false
				}
			case op.Kind == OpRange || op.Kind == OpMerge || op.Prev:
				if !visit(op.Key, op.End) {
					return false
				}
			}
		}
	}
	return true
}

// Copies returns the key under which a mutation finds content and the key under which it shows it, without keys if it
// is not of that kind: a change of names that adds a name or restores a version.
func (m *CheckedMutation) Copies() (from, to []byte) {
	n := m.Naming
	if n == nil {
		return nil, nil
	}
	switch n.Kind {
	case Bind, Move:
		return n.Key, n.To
	case Fork:
		return n.From, n.To
	case Rollback:
		return n.From, n.Key
	}
	return nil, nil
}

// Names visits all keys that a mutation names, as ranges in the sense of Op, until visit returns false. known is false
// for a mutation that is about something else than keys, or also about something else.
func (m *CheckedMutation) Names(visit func(key, end []byte) bool) (known bool) {
	switch {
	case m.Class == Act:
		visit(m.Action.Key, nil)
	case m.Class == Write:
		m.Txn.Ranges(visit)
	case m.Class == Name:
		for _, key := range m.Naming.own() {
			if !visit(key, nil) {
				break
			}
		}
	default:
		return m.Class == Lease
	}
	return true
}
