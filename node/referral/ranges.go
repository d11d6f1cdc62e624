package referral

// Ranges visits ranges of keys, in the sense of scope.Op, until visit returns false,
// as scope.Txn.Ranges does.
type Ranges func(visit func(key, end []byte) bool) bool

// Keys are single keys; empty ones do not count.
func Keys(keys ...[]byte) Ranges {
	return func(visit func(key, end []byte) bool) bool {
		for _, k := range keys {
			if len(k) > 0 && !visit(k, nil) {
				return false
			}
		}
		return true
	}
}

// Between is the range [key, end).
func Between(key, end []byte) Ranges {
	return func(visit func(key, end []byte) bool) bool { return visit(key, end) }
}
