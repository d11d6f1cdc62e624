package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/client"
	"github.com/aweigh/aweigh/internal/show"
	"github.com/aweigh/aweigh/scope"
)

// A node reads a range as a whole, and refuses it if one of the scopes that it touches does not let the node read. Then
// the parts of the range that other scopes decide about are read one by one.

// unreadable reports whether a scope does not let the node that answers read.
func unreadable(err error) bool { return deniedAs(err, scope.ErrNoReader) }

// deniedAs reports whether a node answered with an error that wraps scope.ErrDenied.
func deniedAs(err, why error) bool {
	_, reason, _ := strings.Cut(why.Error(), scope.ErrDenied.Error()+": ")
	return errors.Is(err, client.ErrDenied) && strings.Contains(err.Error(), reason)
}

// rangeApart reads the keys of a range, scope by scope, and prints which scopes do not let the node read. refused is
// the error of the whole; it is returned beside what was read.
func (a *app) rangeApart(ctx context.Context, s *session, req *aweighv1.RangeRequest, refused error) (*aweighv1.RangeResponse, error) {
	all, err := s.Client.Scopes(ctx)
	if err != nil {
		return nil, refused
	}
	out := new(aweighv1.RangeResponse)
	var closed []*aweighv1.Scope
	for _, part := range partsOf(all, req.Key, req.RangeEnd) {
		in := deciding(all, part[0], false)
		if slices.Contains(closed, in) {
			continue
		}
		one := &aweighv1.RangeRequest{
			Key: part[0], RangeEnd: part[1], KeysOnly: req.KeysOnly, Revision: req.Revision, Serializable: req.Serializable,
		}
		if left := req.Limit - int64(len(out.Kvs)); req.Limit > 0 {
			one.Limit, one.CountOnly = left, left == 0
		}
		r, err := s.Client.Range(ctx, one)
		if unreadable(err) && in != nil {
			closed = append(closed, in)
			continue
		}
		if err != nil {
			return nil, err
		}
		out.Kvs, out.Count, out.More = append(out.Kvs, r.Kvs...), out.Count+r.Count, out.More || r.More || one.CountOnly && r.Count > 0
		if out.Header == nil || r.Header.GetRevision() < out.Header.GetRevision() {
			out.Header = r.Header
		}
	}
	if out.Header == nil { // not one part can be read
		return nil, refused
	}
	if len(closed) == 0 { // they let it read meanwhile
		return out, nil
	}
	out.Header.Scope = nil // it is not of a single one
	for _, x := range closed {
		fmt.Fprintf(a.err, "aweigh: without the keys of the scope %s, which does not let this node read; ask a node of its anchors, which "+
			"\"aweigh scope show %s\" names\n", show.ScopeName(x), show.Word(string(x.Prefix)))
	}
	return out, errQuiet{refused}
}

// partsOf are the parts of the keys [key, end), in the sense of a RangeRequest, that begin and end where scopes do, in
// order: one scope decides about each.
func partsOf(all []*aweighv1.Scope, key, end []byte) (parts [][2][]byte) {
	unbounded := bytes.Equal(end, []byte{0})
	var cuts [][]byte
	for _, x := range all {
		if len(x.Prefix) == 0 {
			continue
		}
		for _, cut := range [][]byte{x.Prefix, prefixEnd(x.Prefix)} {
			if bytes.Compare(cut, key) > 0 && (unbounded || bytes.Compare(cut, end) < 0) {
				cuts = append(cuts, cut)
			}
		}
	}
	slices.SortFunc(cuts, bytes.Compare)
	for _, cut := range slices.CompactFunc(cuts, bytes.Equal) {
		parts = append(parts, [2][]byte{key, cut})
		key = cut
	}
	return append(parts, [2][]byte{key, end})
}
