package referral

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"

	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/scope"
)

// Looked is the result of a transaction that only reads.
type Looked struct {
	_         struct{} `cbor:",toarray"`
	Succeeded bool
	Responses []scope.Response
	Revision  int64 // of the key space at the time of the read
}

// OnlyReads reports whether the operations of a transaction are all ranges; nested transactions count as writes.
func OnlyReads(t *scope.Txn) bool {
	for _, branch := range [][]scope.Op{t.Success, t.Failure} {
		for i := range branch {
			if branch[i].Kind != scope.OpRange {
				return false
			}
		}
	}
	return true
}

// ErrWrites refuses a transaction that writes where only reads are accepted.
var ErrWrites = fmt.Errorf("%w: a transaction that writes, where one only reads", scope.ErrInvalid)

// Look carries out a transaction that only reads, as of a revision, 0 for the newest. The bounds of transactions that
// all nodes must execute do not apply. The scope must own the keys. The error is ErrWrites for other transactions.
func Look(s *scope.State, t *scope.Txn, at int64) (l Looked, err error) {
	if !OnlyReads(t) {
		return l, ErrWrites
	}
	l.Succeeded, l.Revision = true, s.Head().Revision
	branch := t.Success
	for i := range t.Compare {
		ok, err := compare(s, &t.Compare[i], at)
		if err != nil {
			return l, err
		}
		if !ok {
			l.Succeeded, branch = false, t.Failure
			break
		}
	}
	l.Responses = make([]scope.Response, len(branch))
	for i := range branch {
		r := rangeAt(&branch[i], at)
		res, err := s.Range(branch[i].Key, branch[i].End, r)
		if err != nil {
			return l, err
		}
		l.Responses[i] = scope.Response{Kind: scope.OpRange, Range: res}
	}
	return l, nil
}

// Wrong returns why l is no possible answer to t, whichever node gave it; nil if it is possible.
func (l *Looked) Wrong(t *scope.Txn) error {
	branch := t.Success
	if !l.Succeeded {
		branch = t.Failure
	}
	if len(l.Responses) != len(branch) || !l.Succeeded && len(t.Compare) == 0 {
		return fmt.Errorf("%w: %d responses where there are %d operations", machine.ErrFrame, len(l.Responses), len(branch))
	}
	for i := range branch {
		r, res := rangeAt(&branch[i], 0), &l.Responses[i].Range
		inOrder := slices.IsSortedFunc(res.Kvs, func(a, b scope.KeyValue) int { return cmp.Or(bytes.Compare(a.Key, b.Key), -1) }) // none twice
		switch {
		case l.Responses[i].Kind != scope.OpRange:
			return fmt.Errorf("%w: a response of another kind", machine.ErrFrame)
		case slices.ContainsFunc(res.Kvs, func(kv scope.KeyValue) bool { return !scope.Within(kv.Key, branch[i].Key, branch[i].End) }):
			return fmt.Errorf("%w: keys that were not asked for", machine.ErrFrame)
		case r.Limit > 0 && int64(len(res.Kvs)) > r.Limit, r.CountOnly && len(res.Kvs) > 0, res.Count < int64(len(res.Kvs)):
			return fmt.Errorf("%w: %d of %d keys, where at most %d were asked for", machine.ErrFrame, len(res.Kvs), res.Count, r.Limit)
		case res.More && (len(res.Kvs) == 0 || r.Limit == 0):
			return fmt.Errorf("%w: more keys, after none or all", machine.ErrFrame)
		case r.Sort == scope.ByKey && r.Order != scope.Descending && !inOrder:
			return fmt.Errorf("%w: keys in disorder", machine.ErrFrame)
		}
	}
	return nil
}

// rangeAt returns the range that an operation reads, as of revision at if it names none.
func rangeAt(op *scope.Op, at int64) (r scope.Range) {
	if op.Range != nil {
		r = *op.Range
	}
	if r.Revision <= 0 {
		r.Revision = at
	}
	return r
}

// compare evaluates a compare in the same way as a transaction that writes: for every key of the range, or for an
// absent key if there is none.
func compare(s *scope.State, c *scope.Compare, at int64) (bool, error) {
	res, err := s.Range(c.Key, c.End, scope.Range{Revision: at, KeysOnly: c.Target != scope.OnValue})
	if err != nil {
		return false, err
	}
	if len(res.Kvs) == 0 {
		return c.Holds(&scope.KeyValue{}, false), nil
	}
	for i := range res.Kvs {
		if !c.Holds(&res.Kvs[i], true) {
			return false, nil
		}
	}
	return true, nil
}

// Cost subtracts what a transaction reads from *room, in bytes, and from *visits, in versions of keys. The error is
// scope.ErrTooMuch if one of them does not suffice.
func Cost(s *scope.State, t *scope.Txn, at int64, room, visits *int) error {
	var err error
	take := func(key, end []byte, r scope.Range) bool {
		var size, seen int
		size, seen, err = s.RangeSize(key, end, &r, *room, *visits)
		*room, *visits = *room-size, *visits-seen
		return err == nil
	}
	for i := range t.Compare {
		c := &t.Compare[i]
		if !take(c.Key, c.End, scope.Range{Revision: at, KeysOnly: c.Target != scope.OnValue}) {
			return err
		}
	}
	for _, branch := range [][]scope.Op{t.Success, t.Failure} {
		for i := range branch {
			if op := &branch[i]; !take(op.Key, op.End, rangeAt(op, at)) {
				return err
			}
		}
	}
	return nil
}
