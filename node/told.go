package node

import (
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/scope"
)

// told keeps the responses to what was written in the name of others than the anchors'
// nodes. One that does not hold the scope hands a bundle to several anchors, and the block
// may come to one of them before the bundle does.
type told struct {
	anchors authors        // in whose name the anchors' nodes write
	until   aweigh.Instant // 0: there are none
	all     map[aweigh.Hash]scope.Outcome
	bytes   int
}

const (
	tellFor   = time.Minute
	toldBytes = 256 << 10
)

// each visits the outcomes of a block, and says which are of such a mutation.
func (t *told) each(b *scope.Block, outcomes []scope.Outcome, visit func(o *scope.Outcome, strange bool)) {
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

// strip drops the responses that nobody here asked for and that will not be kept.
func (t *told) strip(b *scope.Block, outcomes []scope.Outcome, awaits func(aweigh.Hash) bool) {
	t.each(b, outcomes, func(o *scope.Outcome, strange bool) {
		if !awaits(o.Mutation) && (!strange || responseBytes(o.Responses) > toldBytes/16) { // who needs more reads
			o.Responses = nil
		}
	})
}

// apply takes those of a final block, and forgets those of long ago.
func (t *told) apply(b *scope.Block, outcomes []scope.Outcome, now aweigh.Instant) {
	if t.until != 0 && now >= t.until {
		t.until, t.all, t.bytes = 0, nil, 0
	}
	t.each(b, outcomes, func(o *scope.Outcome, strange bool) {
		if strange && len(o.Responses) > 0 {
			t.keep(o, now)
		}
	})
}

// keep keeps one, and forgets all before when there are too many.
func (t *told) keep(o *scope.Outcome, now aweigh.Instant) {
	size := 256 + responseBytes(o.Responses)
	if t.all == nil || t.bytes+size > toldBytes {
		t.all, t.bytes = make(map[aweigh.Hash]scope.Outcome), 0
	}
	t.all[o.Mutation] = *o
	t.bytes += size
	t.until = now.Add(tellFor)
}

// responseBytes estimates the memory of responses.
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
