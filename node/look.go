package node

import (
	"bytes"
	"fmt"

	"github.com/aweigh/aweigh/scope"
)

// Looked is what a transaction that only reads finds.
type Looked struct {
	_         struct{} `cbor:",toarray"`
	Succeeded bool
	Responses []scope.Response
	Revision  int64 // of the key space that was read from
}

// Look carries out a transaction that only reads, without the bounds of one that all
// nodes must execute. The scope must own its keys.
func (v *View) Look(t *scope.Txn) (Looked, error) { return v.look(t, -1) }

// look is Look for an answer that has room for some bytes of keys and values; -1: for any.
// The error is scope.ErrTooMuch if it has not.
func (v *View) look(t *scope.Txn, room int) (l Looked, err error) {
	l.Succeeded, l.Revision = true, v.Head().Revision
	branch := t.Success
	for i := range t.Compare {
		ok, err := v.compare(&t.Compare[i])
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
		op := &branch[i]
		if op.Kind != scope.OpRange || op.Range == nil {
			return l, fmt.Errorf("%w: an operation that writes, where one only reads", scope.ErrInvalid)
		}
		if room >= 0 {
			size, err := v.measure(op.Key, op.End, *op.Range, room)
			if err != nil {
				return l, err
			}
			room -= size
		}
		res, err := v.Range(op.Key, op.End, *op.Range)
		if err != nil {
			return l, err
		}
		l.Responses[i] = scope.Response{Kind: scope.OpRange, Range: res}
	}
	return l, nil
}

// compare evaluates a compare as a transaction that writes does: for every key of the
// range, or for an absent one if there is none.
func (v *View) compare(c *scope.Compare) (bool, error) {
	res, err := v.Range(c.Key, c.End, scope.Range{KeysOnly: c.Target != scope.OnValue})
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

// measurePage is how many keys are read at a time to measure them: a value may have more
// than a megabyte.
const measurePage = 64

// measure is how many bytes of keys and values a range reads. It stops at those that there
// is no room for.
func (v *View) measure(key, end []byte, r scope.Range, room int) (size int, err error) {
	if r.CountOnly || len(end) == 0 {
		return 0, nil
	}
	left := r.Limit
	if r.Sort != scope.ByKey || r.Order == scope.Descending {
		left = 0 // it looks at all of them
	}
	page := r
	page.Sort, page.Order = scope.ByKey, scope.Unordered
	for {
		page.Limit = measurePage
		if left > 0 {
			page.Limit = min(left, page.Limit)
		}
		res, err := v.Range(key, end, page)
		if err != nil {
			return size, err
		}
		for i := range res.Kvs {
			size += len(res.Kvs[i].Key) + len(res.Kvs[i].Value) + 64
		}
		if size > room {
			return size, scope.ErrTooMuch
		}
		if left > 0 {
			if left -= int64(len(res.Kvs)); left <= 0 {
				return size, nil
			}
		}
		if !res.More || len(res.Kvs) == 0 {
			return size, nil
		}
		key = append(bytes.Clone(res.Kvs[len(res.Kvs)-1].Key), 0)
	}
}
