package machine

import (
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/scope"
)

// outcomeCache keeps the responses to mutations whose author is no anchor's node. A peer that does not hold the scope
// gives a bundle to several anchors, and the block may reach one of them before the bundle does.
type outcomeCache struct {
	anchors authors        // the authors of what the anchors' nodes write
	until   aweigh.Instant // when all are forgotten; 0: there are none
	all     map[aweigh.Hash]scope.Outcome
	bytes   int
}

const (
	tellFor   = time.Minute
	toldBytes = 256 << 10
)

// each visits the outcomes of a block; strange is set if the author of the mutation is no anchor's node.
func (t *outcomeCache) each(b *scope.Block, outcomes []scope.Outcome, visit func(o *scope.Outcome, strange bool)) {
	at := 0
	for _, c := range b.Bundles {
		mutations := c.Mutations()
		strange := !t.anchors.has(mutations[0].Author)
		for range mutations {
			visit(&outcomes[at], strange)
			at++
		}
	}
}

// strip drops the responses that no request here waits for and that the cache will not keep.
func (t *outcomeCache) strip(b *scope.Block, outcomes []scope.Outcome, awaits func(aweigh.Hash) bool) {
	t.each(b, outcomes, func(o *scope.Outcome, strange bool) {
		if !awaits(o.Mutation) && (!strange || responseBytes(o.Responses) > toldBytes/16) { // larger: read again
			o.Responses = nil
		}
	})
}

// apply keeps the responses of a final block, and forgets all earlier ones when their time is over.
func (t *outcomeCache) apply(b *scope.Block, outcomes []scope.Outcome, now aweigh.Instant) {
	if t.until != 0 && now >= t.until {
		t.until, t.all, t.bytes = 0, nil, 0
	}
	t.each(b, outcomes, func(o *scope.Outcome, strange bool) {
		if strange && len(o.Responses) > 0 {
			t.keep(o, now)
		}
	})
}

// keep keeps one outcome. If there is no room for it, all earlier outcomes are forgotten.
func (t *outcomeCache) keep(o *scope.Outcome, now aweigh.Instant) {
	size := 256 + responseBytes(o.Responses)
	if t.all == nil || t.bytes+size > toldBytes {
		t.all, t.bytes = make(map[aweigh.Hash]scope.Outcome), 0
	}
	t.all[o.Mutation] = *o
	t.bytes += size
	t.until = now.Add(tellFor)
}

// responseBytes returns an estimate of the memory of responses, in bytes.
func responseBytes(all []scope.Response) (size int) {
	for i := range all {
		r := &all[i]
		for _, kvs := range [][]scope.KeyValue{r.Prev, r.Range.Kvs} {
			for k := range kvs {
				size += 200 + len(kvs[k].Key) + len(kvs[k].Value)
			}
		}
		size += 200 + responseBytes(r.Responses)
	}
	return size
}
