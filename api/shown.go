package api

import (
	"fmt"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/etcd/auth"
	"github.com/aweigh/aweigh/scope"
)

// namesShown reports why a user may not see an answer: it may not read all keys that the answer names. These can be
// others than the request's, such as further aliases of an object.
func namesShown(r *auth.Rights, answer any) error {
	for _, key := range namesIn(answer) {
		if len(key) == 0 {
			continue
		}
		if err := r.MayRead(key, nil); err != nil {
			return err
		}
	}
	return nil
}

// leavesShown is namesShown for a proof of a range, which shows the keys beside the range.
func leavesShown(r *auth.Rights, answer any) error {
	m, ok := answer.(*aweighv1.ProveRangeResponse)
	if !ok || m == nil {
		return nil
	}
	p, err := scope.DecodeRangeProof(m.Proof)
	if err != nil {
		return err
	}
	for i := range p.Parts {
		for _, l := range p.Parts[i].Leaves.Leaves {
			if l.Kind != scope.HoldsVersion {
				continue
			}
			if err := r.MayRead(l.Key, nil); err != nil {
				return fmt.Errorf("%w: the proof would show the name of a key beside those that were asked for", err)
			}
		}
	}
	return nil
}

// namesIn are the keys that an answer names.
func namesIn(answer any) (keys [][]byte) {
	switch m := answer.(type) {
	case *aweighv1.ResolveResponse:
		if m != nil {
			keys = [][]byte{m.Key, m.GetKv().GetKey(), m.GetPlace().GetKey(), m.GetMoved().GetKey(), m.GetMoved().GetTo()}
		}
	case *aweighv1.ActResponse:
		return namesIn(m.GetResolved())
	case *aweighv1.RedirectsResponse:
		for _, x := range m.Moved {
			keys = append(keys, x.Key, x.To)
		}
	case *aweighv1.HistoryResponse:
		for _, e := range m.Entries {
			keys = append(keys, e.Key)
			if from, ok := scope.ParseMerged(e.Reason); ok {
				keys = append(keys, from.Key)
			}
		}
	}
	return keys
}
