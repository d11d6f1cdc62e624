//go:build !noverbs

package action

import "cel.dev/cel-go/cel"

// MaxValue bounds the values that predicates look at, in bytes: one that asks for a
// longer one is not met.
const MaxValue = 4096

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
