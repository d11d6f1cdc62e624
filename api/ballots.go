package api

import (
	"context"
	"errors"
	"fmt"

	"connectrpc.com/connect"

	"github.com/aweigh/aweigh"
	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/node"
)

const (
	mostWanted  = 10_000 // ballots asked for by name at a time
	bundleBytes = 1 << 20
)

// Ballots implements aweighv1connect.NodeHandler.
func (s *service) Ballots(ctx context.Context, req *connect.Request[aweighv1.BallotsRequest], out *connect.ServerStream[aweighv1.BallotsResponse]) (err error) {
	want, err := wanted(req.Msg.Want)
	if err != nil {
		return problem(err)
	}
	v, err := s.at.Read(ctx, false)
	if err != nil {
		return problem(err)
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	if len(want) > 0 {
		return problem(some(v, want, req.Msg.Inventory, out.Send))
	}
	return problem(s.whole(ctx, v, req.Msg.Inventory, out.Send))
}

// wanted are the identities of ballots in a request.
func wanted(names [][]byte) ([]aweigh.Hash, error) {
	if len(names) > mostWanted {
		return nil, fmt.Errorf("%w: %d ballots at a time, at most %d are given", errRequest, len(names), mostWanted)
	}
	want := make([]aweigh.Hash, len(names))
	for i, name := range names {
		if len(name) != len(want[i]) {
			return nil, fmt.Errorf("%w: the identity of a ballot has %d bytes, not %d", errRequest, len(want[i]), len(name))
		}
		want[i] = aweigh.Hash(name)
	}
	return want, nil
}

// some sends the wanted ballots that are in the box, or their names.
func some(v *node.View, want []aweigh.Hash, names bool, send func(*aweighv1.BallotsResponse) error) error {
	part := new(aweighv1.BallotsResponse)
	for _, id := range want {
		raw, ok, err := v.Load(id)
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		if names {
			raw = nil
		}
		if addBallot(part, id, raw) {
			if err := send(part); err != nil {
				return err
			}
			part = new(aweighv1.BallotsResponse)
		}
	}
	return send(part)
}

// whole sends all ballots of the box, or their names. One request at a time reads; while
// its client takes the result, others read.
func (s *service) whole(ctx context.Context, v *node.View, names bool, send func(*aweighv1.BallotsResponse) error) error {
	var from aweigh.Hash
	for more := true; more; {
		select {
		case s.reading <- struct{}{}:
		case <-ctx.Done():
			return ctx.Err()
		}
		part, next, err := partOf(v, from, names)
		<-s.reading
		if err != nil {
			return err
		}
		if err := send(part); err != nil {
			return err
		}
		from, more = next, !next.IsZero()
	}
	return nil
}

// partOf is as much of the box, from a name on, as one answer holds. The next part
// begins at next; zero means that there is none.
func partOf(v *node.View, from aweigh.Hash, names bool) (part *aweighv1.BallotsResponse, next aweigh.Hash, err error) {
	part = new(aweighv1.BallotsResponse)
	full := false
	var bad error
	err = v.Box(from, func(id aweigh.Hash) bool {
		if full {
			next = id
			return false
		}
		var raw []byte
		ok := names
		if !names {
			raw, ok, bad = v.Load(id)
		}
		if ok && bad == nil {
			full = addBallot(part, id, raw)
		}
		return bad == nil
	})
	return part, next, errors.Join(err, bad)
}

// addBallot adds a ballot to an answer, or its name if raw is nil. It reports whether the
// answer is full.
func addBallot(part *aweighv1.BallotsResponse, id aweigh.Hash, raw []byte) (full bool) {
	if raw == nil {
		part.Names = append(part.Names, id[:]...)
	} else {
		part.Bundle = append(part.Bundle, raw...)
	}
	return len(part.Names)+len(part.Bundle) >= bundleBytes
}
