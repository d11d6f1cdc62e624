package scope

import "fmt"

// word is the name of a numbered constant; first is the number of the first name.
func word(what string, n, first uint8, names ...string) string {
	if i := int(n) - int(first); i >= 0 && i < len(names) {
		return names[i]
	}
	return fmt.Sprintf("%s(%d)", what, n)
}

// counted is a number of things.
func counted[N int | int64 | uint32](n N, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// String is the target in lower case.
func (t Target) String() string {
	return word("target", uint8(t), 1, "version", "create revision", "mod revision", "value", "lease")
}

// String is the relation's sign.
func (r Relation) String() string { return word("relation", uint8(r), 1, "=", ">", "<", "!=") }

// String is the kind in lower case.
func (k OpKind) String() string {
	return word("operation", uint8(k), 1, "range", "put", "delete", "txn")
}

// String is the kind in lower case.
func (k LeaseKind) String() string {
	return word("lease request", uint8(k), 1, "grant", "revoke", "keep alive")
}

// String is the order in lower case.
func (o Order) String() string {
	return word("order", uint8(o), 0, "unordered", "ascending", "descending")
}

// String is what it sorts by, in lower case.
func (s SortBy) String() string {
	return word("sort", uint8(s), 0, "key", "version", "create revision", "mod revision", "value")
}
