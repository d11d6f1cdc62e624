package api

import (
	"context"
	"fmt"

	"connectrpc.com/connect"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/lineage"
	"github.com/aweigh/aweigh/node"
	"github.com/aweigh/aweigh/scope"
)

// Watch implements aweighv1connect.NodeHandler. The first response comes at
// once and has the revision from which the stream watches; progress, if
// requested, comes with every final block.
func (s *service) Watch(ctx context.Context, req *connect.Request[aweighv1.WatchRequest], out *connect.ServerStream[aweighv1.WatchResponse]) error {
	m := req.Msg
	if len(m.Key) == 0 {
		return problem(scope.ErrEmptyKey)
	}
	if m.StartRevision < 0 {
		return problem(fmt.Errorf("%w: a start revision of %d", errRequest, m.StartRevision))
	}
	created := false
	ended := make(chan struct{})
	defer close(ended)
	err := s.route.Watch(ctx, m.Key, m.RangeEnd, m.StartRevision, func(c node.Changes) error {
		if !created {
			created = true
			go func() {
				select {
				case <-c.Late:
					select {
					case <-ended:
					default:
						cutOff(ctx)
					}
				case <-ended:
				}
			}()
			if err := out.Send(&aweighv1.WatchResponse{Header: s.read(c.Head, false), Created: true}); err != nil {
				return err
			}
			if len(c.Events) == 0 {
				return nil
			}
		}
		if len(c.Events) == 0 && len(c.WaitsFor) == 0 && !m.Progress {
			return nil
		}
		header := s.read(c.Head, false)
		header.Revision = c.Revision
		return out.Send(&aweighv1.WatchResponse{Header: header, Events: eventsOf(c.Events, m.PrevKv), WaitsFor: c.WaitsFor})
	})
	return problem(err)
}

func eventsOf(events []*scope.Event, prev bool) []*aweighv1.Event {
	out := make([]*aweighv1.Event, len(events))
	for i, e := range events {
		out[i] = &aweighv1.Event{Delete: e.Class == lineage.Delete, Kv: kvOf(&e.Kv)}
		if prev && e.Prev != nil {
			out[i].PrevKv = kvOf(e.Prev)
		}
	}
	return out
}
