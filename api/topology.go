package api

import (
	"context"

	"connectrpc.com/connect"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
)

// Topology implements aweighv1connect.NodeHandler.
func (s *service) Topology(ctx context.Context, req *connect.Request[aweighv1.TopologyRequest]) (*connect.Response[aweighv1.TopologyResponse], error) {
	heard := s.hear(ctx, req.Msg.Linearizable)
	o, e, head, err := s.at.Outlook()
	if err != nil {
		return nil, problem(err)
	}
	out := &aweighv1.TopologyResponse{
		Header: s.named(s.read(head, heard)), Split: o.Split.String(), Rate: o.Rate, Epochs: o.Epochs, Rest: o.Rest, Most: o.Most,
		Splits: o.Splits, Moved: uint64(o.Moved), Changes: o.Changes, SinceNs: int64(o.Since), Busy: o.Busy, Next: o.Next, Reason: o.Reason,
	}
	out.Header.Epoch, out.Fold, out.QuietNs = uint64(e.Number), o.Fold.String(), int64(o.Quiet)
	if o.Home.Below {
		out.Home = &aweighv1.Homeward{Quiet: o.Home.Quiet, FromNs: int64(o.Home.From), Stays: o.Home.Stays}
	}
	for i := range o.Hot {
		h := &o.Hot[i]
		out.Heat = append(out.Heat, &aweighv1.Heat{Prefix: h.Prefix, Key: h.Key, Least: h.Least, Most: h.Most, Streak: h.Streak})
	}
	return connect.NewResponse(out), nil
}
