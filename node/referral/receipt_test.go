package referral

import (
	"testing"

	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/scope"
)

// TestResponsesAreWaitedFor: an anchor that gives a receipt without the responses, which it may have lost, does not
// keep those of others from the asker.
func TestResponsesAreWaitedFor(t *testing.T) {
	q := inquiryOf(t, AskSubmit, 1, 1, 1, 1)
	outcome := scope.Outcome{Code: scope.Applied, Revision: 100, Succeeded: true, Responses: []scope.Response{{}}}
	full := EncodeReceipts([]machine.Receipt{{Outcome: outcome, Height: 5, Epoch: 3}})
	asked := 0
	for x, ok := q.Next(); ok; x, ok = q.Next() {
		body := full
		if asked++; asked == 1 {
			body = bareReceipts(full)
		}
		q.Hear(x, 1, Answer{Epoch: 3, Revision: 100, Body: body}, nil)
	}
	a, err, ended := q.Result()
	if !ended || err != nil || asked != 3 {
		t.Fatalf("ended: %t, %v, after %d anchors", ended, err, asked)
	}
	if got, err := DecodeReceipts(a.Body, q.of.genesis.Hash()); err != nil || len(got) != 1 || len(got[0].Responses) != 1 {
		t.Errorf("%+v, %v", got, err)
	}
}
