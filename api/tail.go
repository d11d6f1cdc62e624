package api

import (
	"context"
	"fmt"

	"connectrpc.com/connect"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/node"
)

// Tail implements aweighv1connect.NodeHandler. A caller needs the right to read all keys of the prefix, of the whole
// scope for none. Each response is one page, and is sent before the next is read.
func (s *service) Tail(ctx context.Context, req *connect.Request[aweighv1.TailRequest],
	out *connect.ServerStream[aweighv1.TailResponse]) error {
	m := req.Msg
	if m.SinceRevision < 0 || m.SinceIndex < 0 || m.SinceRevision > 0 && m.SinceIndex > 0 {
		return problem(fmt.Errorf("%w: entries since revision %d and index %d", errRequest, m.SinceRevision,
			m.SinceIndex))
	}
	want := node.Tail{Revision: m.SinceRevision, Index: m.SinceIndex, Prefix: m.Prefix, Follow: m.Follow}
	return problem(s.at.Tail(ctx, want, func(p node.TailPage) error {
		resp := &aweighv1.TailResponse{Header: s.read(p.Head, true), Next: p.Next}
		for i := range p.Items {
			resp.Items = append(resp.Items, tailItemOf(&p.Items[i]))
		}
		return out.Send(resp)
	}))
}

func tailItemOf(x *node.TailItem) *aweighv1.TailItem {
	if x.To > 0 {
		run := &aweighv1.TailItem{Index: x.Index, To: x.To}
		for _, h := range x.Hashes {
			run.Hashes = append(run.Hashes, h[:])
		}
		return run
	}
	item := &aweighv1.TailItem{
		Index: x.Index, Entry: x.Encode(), Block: x.Block[:], TimeNs: int64(x.Time), AuthorName: x.Name,
		PrincipalName: x.Acts,
	}
	if x.Final != nil {
		item.Finality = canon.Encode(*x.Final)
	}
	return item
}
