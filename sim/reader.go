package sim

import (
	"bytes"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/store"
)

// reader makes verified reads, as client.Verified does: it believes no node, and asks one after the other until an
// answer proves itself by the network's identity alone.
type reader struct {
	guest
	atMost time.Duration // age of what it takes; 0: any
	judge  *scope.RangeReader
	taken  map[aweigh.ScopeID]aweigh.Height // of the newest block that it took, by the watch's own record
}

// readers are all verified readers, and what liars keep to deceive them.
type readers struct {
	all   []*reader
	pasts map[*body][]store.Snapshot // of liars' disks, as they were once
}

const (
	verifiedReaders = 2
	keptPasts       = 4 // of each liar's disk
)

// startReaders makes verified readers ask as the scenario sets, until Stop. The first permits any age.
func (w *World) startReaders(hosts []*Node) {
	load := w.Scenario.Load
	if load.Verified == 0 {
		return
	}
	x := &w.readers
	for i := range verifiedReaders {
		v := &reader{
			guest: guest{w: w, id: i, beside: hosts[i%len(hosts)].Index, rand: rand.New(rand.NewPCG(w.Scenario.Seed, uint64(60+i)))},
			taken: make(map[aweigh.ScopeID]aweigh.Height),
		}
		if i > 0 {
			v.atMost = time.Second + time.Duration(v.rand.Int64N(int64(4*time.Second)))
		}
		v.judge = scope.NewRangeReader(w.id, v.atMost)
		x.all = append(x.all, v)
	}
	for i := range load.Verified {
		v := x.all[i%len(x.all)]
		w.at(w.drawTime(v.rand), func() {
			if key, end := v.draw(); w.firing {
				v.read(key, end, false)
			}
		})
	}
	x.pasts = make(map[*body][]store.Snapshot)
	for _, n := range w.Nodes {
		if n.liar == nil {
			continue
		}
		for range keptPasts {
			w.at(w.drawTime(x.all[0].rand), func() { x.pasts[n.body] = append(x.pasts[n.body], n.Disk.Snapshot()) })
		}
	}
}

// draw is the range of a question: a key that may be absent, some keys, or all.
func (v *reader) draw() (key, end []byte) {
	some := func() []byte { return []byte(v.w.keyName(v.rand.IntN(v.w.Scenario.Load.Keys))) }
	key = some()
	switch v.rand.IntN(8) {
	case 0:
		return append(key, "/none"...), nil
	case 1, 2:
		if end = some(); bytes.Compare(key, end) > 0 {
			key, end = end, key
		}
		if bytes.Equal(key, end) {
			end = nil
		}
		return key, end
	case 3:
		under := key[:bytes.LastIndexByte(key, '/')+1]
		return under, scope.PrefixEnd(under)
	case 4:
		return []byte{0}, []byte{0}
	}
	return key, nil
}

// inquest is a question of a verified reader, which it asks one node after the other.
type inquest struct {
	*reader
	question *scope.RangeQuestion
	before   map[aweigh.ScopeID]aweigh.Height // what the reader had taken
	last     bool                             // asked once the faults are over: it is never given up
	until    aweigh.Instant
	ahead    []*Node // to ask next
	tries    int
	patience time.Duration // for one node
	silent   int           // the last try to which a liar gives no answer
	over     bool
}

// read begins a question.
func (v *reader) read(key, end []byte, last bool) *inquest {
	q := &inquest{
		reader: v, question: v.judge.Ask(key, end), before: maps.Clone(v.taken), last: last,
		until: v.w.now.Add(4 * v.w.Scenario.Load.Give), patience: firstPatience,
	}
	q.next()
	return q
}

const (
	firstPatience = time.Second
	mostPatience  = 16 * time.Second
	askedAgain    = 50 * time.Millisecond // after an answer that was refused
)

// wanted reports whether an answer is still waited for.
func (q *inquest) wanted() bool { return !q.over && (q.last || q.w.firing && q.w.now < q.until) }

// order draws the order in which nodes are asked: in half of the rounds those first that lie.
func (q *inquest) order() {
	for _, i := range q.rand.Perm(len(q.w.Nodes)) {
		q.ahead = append(q.ahead, q.w.Nodes[i])
	}
	if q.rand.IntN(2) == 0 {
		slices.SortStableFunc(q.ahead, func(a, b *Node) int { return lying(b) - lying(a) })
	}
}

func lying(n *Node) int {
	if n.liar != nil && n.liar.on() {
		return 1
	}
	return 0
}

// next asks the next node.
func (q *inquest) next() {
	if !q.wanted() {
		return
	}
	if len(q.ahead) == 0 {
		if q.order(); q.tries > 0 {
			q.patience = min(2*q.patience, mostPatience)
		}
	}
	at := q.ahead[0]
	q.ahead = q.ahead[1:]
	q.tries++
	try := q.tries
	q.w.at(q.patience, func() {
		if q.tries == try && q.wanted() {
			if q.silent == try {
				q.w.watch.reach("passed over: silence")
			}
			q.next()
		}
	})
	q.travel(at, func() {
		q.serve(at, try, func(raw []byte, lie string, err error) {
			q.travel(at, func() {
				if q.tries == try && q.wanted() {
					q.hear(at, raw, lie, err)
				}
			})
		})
	})
}

// hear judges the answer of a node, and takes it or asks another node.
func (q *inquest) hear(at *Node, raw []byte, lie string, err error) {
	var p *scope.RangeProof
	var r scope.RangeReport
	if err == nil {
		p, r, err = q.question.Open(raw, q.w.now)
		if err == nil {
			err = q.judge.Take(q.question, &r)
		}
	}
	if err == nil {
		q.over = true
		q.w.believes(q, at, p, &r)
		return
	}
	if errors.Is(err, scope.ErrProof) {
		q.w.refuses(q, at, lie, err)
	} else if lie != "" {
		q.w.watch.reach("passed over: " + lie)
	}
	q.tries++ // its time is not waited for
	q.w.at(askedAgain, q.next)
}

// lastRead begins a verified read once the faults are over, nil if there are no readers. Where a scope cannot decide,
// or promises nothing, it is about a key of the root scope.
func (w *World) lastRead() *inquest {
	if len(w.readers.all) == 0 {
		return nil
	}
	v := w.readers.all[w.readers.all[0].rand.IntN(len(w.readers.all))]
	key, end := v.draw()
	if w.somePromiseNothing(nil, []byte{0}) {
		if key, end = []byte(w.key("healed")), nil; w.governing(w.key("healed")) != w {
			return nil
		}
	}
	return v.read(key, end, true)
}

// somePromiseNothing reports whether there is a scope of keys in a range that cannot decide, or in which more lie than
// may.
func (w *World) somePromiseNothing(key, end []byte) bool {
	return slices.ContainsFunc(w.scopes, func(c *World) bool {
		_, lacks := c.core()
		p := c.Genesis.Prefix()
		return !c.island && (c.overBudget() || lacks != 0) && (scope.Covers(p, key, nil) || len(end) > 0 && bytes.Compare(p, key) >= 0 && (end[0] == 0 || bytes.Compare(p, end) < 0))
	})
}

// await demands an answer.
func (q *inquest) await(pass pass) error {
	if q == nil {
		return nil
	}
	w, within := q.w, q.w.Scenario.Heal.Within
	err := pass(within, func() bool { return q.over })
	if err == nil && !w.watch.over() && !w.somePromiseNothing(q.question.Key, q.question.End) { // one may be founded meanwhile
		w.holds(Verified, nil, q.over, "reader %d asked %d times what %q to %q hold, in %v after the faults were over, and took no answer",
			q.id, q.tries, q.question.Key, q.question.End, within)
	}
	q.over = true
	return err
}
