package action

import "cel.dev/cel-go/cel"

// MaxValue bounds the values that predicates look at, in bytes: one that asks for a
// longer one is not met.
const MaxValue = 4096

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

// variables are what stands in a Facts, with the most that each may hold in bytes.
var variables = []struct {
	name string
	kind *cel.Type
	most uint64
	of   func(*Facts) any
}{
	{"verb", cel.StringType, 64, func(f *Facts) any { return f.Verb }},
	{"now", cel.IntType, 1, func(f *Facts) any { return f.Now }},
	{"caller.id", cel.StringType, 64, func(f *Facts) any { return f.Caller.ID }},
	{"caller.anchor", cel.StringType, 256, func(f *Facts) any { return f.Caller.Anchor }},
	{"caller.weight", cel.IntType, 1, func(f *Facts) any { return f.Caller.Weight }},
	{"scope.prefix", cel.StringType, 512, func(f *Facts) any { return f.Scope.Prefix }},
	{"scope.mode", cel.StringType, 16, func(f *Facts) any { return f.Scope.Mode }},
	{"scope.epoch", cel.IntType, 1, func(f *Facts) any { return f.Scope.Epoch }},
	{"scope.height", cel.IntType, 1, func(f *Facts) any { return f.Scope.Height }},
	{"object.key", cel.StringType, 1024, func(f *Facts) any { return f.Object.Key }},
	{"object.exists", cel.BoolType, 1, func(f *Facts) any { return f.Object.Exists }},
	{"object.uid", cel.StringType, 64, func(f *Facts) any { return f.Object.UID }},
	{"object.version", cel.IntType, 1, func(f *Facts) any { return f.Object.Version }},
	{valueName, cel.BytesType, MaxValue, func(f *Facts) any { return f.Object.Value }},
}

// valueName is the variable that has a bound.
const valueName = "object.value"

// VariableNames are the names that predicates know.
func VariableNames() (names []string) {
	for _, v := range variables {
		names = append(names, v.name)
	}
	return names
}
