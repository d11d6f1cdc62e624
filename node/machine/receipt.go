package machine

import (
	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/scope"
)

// Receipt is the answer to a mutation that is final.
type Receipt struct {
	scope.Outcome
	Height aweigh.Height
	Epoch  aweigh.Epoch // of the block; for a mutation applied before the request, the newest that the node knows
	Scope  aweigh.ScopeID
	Sent   bool // a change of names moved an object to another scope, which received it
}
