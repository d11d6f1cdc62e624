package api

import (
	"bytes"
	"testing"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/api/aweigh/v1/aweighv1connect"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
)

// TestReadsAreSeen: every request whose answer shows content, or whether something holds of it, counts as a read.
func TestReadsAreSeen(t *testing.T) {
	key, err := votes.KeyFromSeed(votes.Ed25519, bytes.Repeat([]byte{1}, 32))
	if err != nil {
		t.Fatal(err)
	}
	bundle := func(op scope.Op) *aweighv1.SubmitRequest {
		t.Helper()
		m := scope.Mutation{Author: key.Public().ID(), Class: scope.Write, Content: canon.Encode(single(op)), Nonce: make([]byte, 16), ValidUntil: 1}
		b, err := scope.Sign(key, scope.MostLimits(), m)
		if err != nil {
			t.Fatal(err)
		}
		return &aweighv1.SubmitRequest{Bundle: b.Raw()}
	}
	a := []byte("/a")
	put, read := &aweighv1.PutRequest{Key: a, PrevKv: true}, &aweighv1.RangeRequest{Key: a}
	within := &aweighv1.TxnRequest{Success: []*aweighv1.Op{{Op: &aweighv1.Op_Range{Range: read}}}}
	for name, x := range map[string]struct {
		procedure string
		request   any
		reads     bool
		keys      int
	}{
		"a put":                {aweighv1connect.NodePutProcedure, &aweighv1.PutRequest{Key: a}, false, 0},
		"a put with prev_kv":   {aweighv1connect.NodePutProcedure, put, true, 0},
		"a deletion":           {aweighv1connect.NodeDeleteProcedure, &aweighv1.DeleteRequest{Key: a}, false, 0},
		"one with prev_kv":     {aweighv1connect.NodeDeleteProcedure, &aweighv1.DeleteRequest{Key: a, PrevKv: true}, true, 0},
		"a transaction":        {aweighv1connect.NodeTxnProcedure, &aweighv1.TxnRequest{}, false, 0},
		"one that reads":       {aweighv1connect.NodeTxnProcedure, within, true, 0},
		"one with a put":       {aweighv1connect.NodeTxnProcedure, &aweighv1.TxnRequest{Failure: []*aweighv1.Op{{Op: &aweighv1.Op_Put{Put: put}}}}, true, 0},
		"one that compares":    {aweighv1connect.NodeTxnProcedure, &aweighv1.TxnRequest{Compare: []*aweighv1.Compare{{Key: a, Value: a, Target: aweighv1.Compare_TARGET_VALUE}}}, true, 0},
		"one within":           {aweighv1connect.NodeTxnProcedure, &aweighv1.TxnRequest{Success: []*aweighv1.Op{{Op: &aweighv1.Op_Txn{Txn: within}}}}, true, 0},
		"a bundle that writes": {aweighv1connect.NodeSubmitProcedure, bundle(scope.Op{Kind: scope.OpPut, Key: a}), false, 1},
		"a bundle that reads":  {aweighv1connect.NodeSubmitProcedure, bundle(scope.Op{Kind: scope.OpRange, Key: a}), true, 1},
		"no bundle":            {aweighv1connect.NodeSubmitProcedure, &aweighv1.SubmitRequest{}, false, 0},
		"a verb":               {aweighv1connect.NodeActProcedure, &aweighv1.ActRequest{Key: a}, true, 0},
		"a verb with a value":  {aweighv1connect.NodeActProcedure, &aweighv1.ActRequest{Key: a, HasValue: true}, false, 0},
		"a judgement":          {aweighv1connect.NodeJudgeProcedure, &aweighv1.JudgeRequest{Key: a}, true, 0},
	} {
		if reads, keys := sight(x.procedure)(x.request); reads != x.reads || len(keys) != x.keys {
			t.Errorf("%s: it reads: %v, with %d keys; want %v, %d", name, reads, len(keys), x.reads, x.keys)
		}
	}
}
