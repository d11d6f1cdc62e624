package action

// Facts are all that a predicate sees. Each has a name in expressions.
type Facts struct {
	Verb string // verb
	Now  int64  // now: of the block, in seconds since 1970

	Caller Caller
	Scope  Scope
	Object Object
}

// Caller is the author of a request.
type Caller struct {
	ID     string // caller.id: of the key that signs, in hex
	Anchor string // caller.anchor: the name of the scope's anchor that asks; empty: it is none
	Weight int64  // caller.weight: of that anchor in this epoch
}

// Scope is the scope whose rule it is.
type Scope struct {
	Prefix string // scope.prefix: of its keys; empty for the root scope
	Mode   string // scope.mode: bft or crash
	Epoch  int64  // scope.epoch
	Height int64  // scope.height: of the block
}

// Object is the object that the name names. A scope on the way to the one that
// decides about it knows its key alone.
type Object struct {
	Key     string // object.key
	Exists  bool   // object.exists
	UID     string // object.uid: empty if it does not exist
	Version int64  // object.version: of the key, 0 if it does not exist
	Value   []byte // object.value: the content before
}
