package scope_test

import (
	"fmt"

	"github.com/aweigh/aweigh/scope"
)

func ExampleDefaultLimits() {
	l := scope.DefaultLimits()
	fmt.Println("key", l.KeyBytes, "value", l.ValueBytes, "mutation", l.MutationBytes)
	fmt.Println("bundle", l.BundleBytes, "block", l.BlockBytes, "or", l.BlockMutations, "mutations")
	fmt.Println("transaction", l.TxnOps, "justification", l.JustificationBytes)
	fmt.Println("drift", l.Drift, "valid for", l.ValidFor)
	fmt.Println("anchors", l.Anchors)
	// Output:
	// key 1024 value 1572864 mutation 2097152
	// bundle 4194304 block 4194304 or 10000 mutations
	// transaction 128 justification 1024
	// drift 500ms valid for 10m0s
	// anchors 128
}
