package client

import (
	"testing"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/scope"
)

// TestRepeatedSignedWritesAreKnown: an answer from the record says so, whether the same bundle was sent again or
// another one with the same write. Otherwise a repeated deletion would look like one that found no key.
func TestRepeatedSignedWritesAreKnown(t *testing.T) {
	txn := scope.Txn{Success: []scope.Op{{Kind: scope.OpDelete, Key: []byte("/a")}}}
	first := &aweighv1.TxnResponse{Succeeded: true, Responses: []*aweighv1.OpResponse{{}}}
	for _, c := range []struct {
		code     scope.Code
		of       *aweighv1.TxnResponse
		repeated bool
	}{
		{scope.Applied, first, false},
		{scope.Applied, &aweighv1.TxnResponse{Succeeded: true}, true},
		{scope.Duplicate, &aweighv1.TxnResponse{Succeeded: true}, true},
		{scope.Applied, &aweighv1.TxnResponse{}, false}, // the compares did not hold, and there is nothing to do then
	} {
		ops := txn.Failure
		if c.of.Succeeded {
			ops = txn.Success
		}
		r, err := outcome(nil, &aweighv1.Outcome{Code: c.code.String(), Txn: c.of}, len(ops))
		if err != nil || r.Repeated != c.repeated {
			t.Errorf("%s of %d responses: repeated %v, %v", c.code, len(c.of.Responses), r.GetRepeated(), err)
		}
	}
}
