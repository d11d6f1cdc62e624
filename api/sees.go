package api

import (
	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/internal/requestlog"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
)

// What a request reads, for the node's record of reads, stands beside the right to it.

// sight returns what the requests of a procedure read; nil for one without a right.
func sight(procedure string) requestlog.Sight { return rights[procedure].sees }

// seesTxn is for requests that are transactions.
func seesTxn[M any](as func(M) (scope.Txn, error)) requestlog.Sight {
	return func(request any) (bool, []requestlog.Keys) {
		m, ok := request.(M)
		if !ok {
			return true, nil
		}
		t, err := as(m)
		return err == nil && t.Reads(), nil // one without a form is not carried out
	}
}

// seesBundle is for bundles, whose keys are in what their author signed.
func seesBundle(request any) (reads bool, keys []requestlog.Keys) {
	m, ok := request.(*aweighv1.SubmitRequest)
	if !ok {
		return true, nil
	}
	unverified := func(votes.PublicKey, votes.Context, []byte, []byte) error { return nil }
	b, err := scope.CheckBundle(m.Bundle, scope.MostLimits(), unverified)
	if err != nil {
		return false, nil // it is not carried out
	}
	for _, m := range b.Mutations() {
		var t scope.Txn
		if m.Class != scope.Write || canon.Decode(m.Content, &t) != nil {
			continue
		}
		reads = reads || t.Reads()
		t.Ranges(func(key, end []byte) bool {
			keys = append(keys, requestlog.Keys{Key: key, End: end})
			return true
		})
	}
	return reads, keys
}

// seesAct is for verbs. Their class stands in the policy: those of the classes read and claim take no value.
func seesAct(request any) (bool, []requestlog.Keys) {
	m, ok := request.(*aweighv1.ActRequest)
	return !ok || !m.HasValue, nil
}
