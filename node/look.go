package node

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"

	"github.com/aweigh/aweigh/scope"
)

// Looked is what a transaction that only reads finds.
type Looked struct {
	_         struct{} `cbor:",toarray"`
	Succeeded bool
	Responses []scope.Response
	Revision  int64 // of the key space that was read from
}

// onlyReads reports whether a transaction only reads, without transactions in it.
func onlyReads(t *scope.Txn) bool {
	for _, branch := range [][]scope.Op{t.Success, t.Failure} {
		for i := range branch {
			if branch[i].Kind != scope.OpRange {
				return false
			}
		}
	}
	return true
}

// errWrites refuses a transaction where only reads are taken.
var errWrites = fmt.Errorf("%w: a transaction that writes, where one only reads", scope.ErrInvalid)

// lookAt carries out a transaction that only reads, without the bounds of one that all
// nodes must execute, as of a revision, 0 for the newest. The scope must own its keys.
func lookAt(s *scope.State, t *scope.Txn, at int64) (l Looked, err error) {
	if !onlyReads(t) {
		return l, errWrites
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

// wrong says what makes it no answer to a transaction that only reads, whoever gave it.
func (l *Looked) wrong(t *scope.Txn) error {
	branch := t.Success
	if !l.Succeeded {
		branch = t.Failure
	}
	if len(l.Responses) != len(branch) || !l.Succeeded && len(t.Compare) == 0 {
		return fmt.Errorf("%w: %d responses where there are %d operations", ErrFrame, len(l.Responses), len(branch))
	}
	for i := range branch {
		r, res := rangeAt(&branch[i], 0), &l.Responses[i].Range
		inOrder := slices.IsSortedFunc(res.Kvs, func(a, b scope.KeyValue) int { return cmp.Or(bytes.Compare(a.Key, b.Key), -1) }) // none twice
		switch {
		case l.Responses[i].Kind != scope.OpRange:
			return fmt.Errorf("%w: a response of another kind", ErrFrame)
		case slices.ContainsFunc(res.Kvs, func(kv scope.KeyValue) bool { return !scope.Within(kv.Key, branch[i].Key, branch[i].End) }):
			return fmt.Errorf("%w: keys that were not asked for", ErrFrame)
		case r.Limit > 0 && int64(len(res.Kvs)) > r.Limit, r.CountOnly && len(res.Kvs) > 0, res.Count < int64(len(res.Kvs)):
			return fmt.Errorf("%w: %d of %d keys, where at most %d were asked for", ErrFrame, len(res.Kvs), res.Count, r.Limit)
		case res.More && (len(res.Kvs) == 0 || r.Limit == 0):
			return fmt.Errorf("%w: more keys, after none or all", ErrFrame)
		case r.Sort == scope.ByKey && r.Order != scope.Descending && !inOrder:
			return fmt.Errorf("%w: keys in disorder", ErrFrame)
		}
	}
	return nil
}

// rangeAt is how an operation reads, as of a revision if it names none.
func rangeAt(op *scope.Op, at int64) (r scope.Range) {
	if op.Range != nil {
		r = *op.Range
	}
	if r.Revision <= 0 {
		r.Revision = at
	}
	return r
}

// compare evaluates a compare as a transaction that writes does: for every key of the
// range, or for an absent one if there is none.
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

// weigh says whether what a transaction looks at stays within some bytes, and versions of
// keys, and takes them from there. The error is scope.ErrTooMuch if not.
func weigh(s *scope.State, t *scope.Txn, at int64, room, visits *int) error {
	var err error
	take := func(key, end []byte, rev int64) bool {
		var size, seen int
		size, seen, err = s.Weigh(key, end, rev, *room, *visits)
		*room, *visits = *room-size, *visits-seen
		return err == nil
	}
	for i := range t.Compare {
		if !take(t.Compare[i].Key, t.Compare[i].End, at) {
			return err
		}
	}
	for _, branch := range [][]scope.Op{t.Success, t.Failure} {
		for i := range branch {
			if op := &branch[i]; !take(op.Key, op.End, rangeAt(op, at).Revision) {
				return err
			}
		}
	}
	return nil
}
