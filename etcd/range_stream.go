package etcd

import (
	"context"
	"slices"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/aweigh/aweigh/etcd/etcdpb"
	"github.com/aweigh/aweigh/node"
	"github.com/aweigh/aweigh/scope"
)

// RangeStream implements etcdpb.KVServer, as etcd 3.7 does: a range in parts, all as of
// one revision, each at most as large as a request may be and one pair more. The last one has the header,
// the count, and whether there is more. No snapshot of the state is kept between parts, so that a stream
// whose revision is compacted meanwhile, or whose keys are delegated, ends with an error.
func (s *kvServer) RangeStream(r *etcdpb.RangeRequest, stream grpc.ServerStreamingServer[etcdpb.RangeStreamResponse]) error {
	ctx, how := stream.Context(), rangeOf(r)
	if err := wellFormedOp(&scope.Op{Kind: scope.OpRange, Key: r.Key, Range: &how}, 0); err != nil {
		return statusFor(ctx, err)
	}
	switch {
	case how.Sort != scope.ByKey || how.Order == scope.Descending:
		return status.Error(codes.Unimplemented, "RangeStream does not support custom sort orders")
	case how.MinMod != 0 || how.MaxMod != 0 || how.MinCreate != 0 || how.MaxCreate != 0:
		return status.Error(codes.Unimplemented, "RangeStream does not support revision filters")
	}
	known, err := s.holds(ctx, r)
	if err != nil {
		return err
	}
	ctx, a, own := s.answering(ctx) // of each part until the next one is read
	if own {
		defer a.Return()
	}
	p := pages{kvServer: s, key: r.Key, end: r.RangeEnd, how: how, sure: !r.Serializable || r.Revision > 0}
	aged, age := node.Aged(ctx)
	if err := p.begin(aged, !r.Serializable); err != nil {
		return statusFor(ctx, err)
	}
	tellAge(ctx, age, r.Serializable)
	for {
		a.Again()
		out, last, err := p.next(ctx)
		if err != nil {
			return statusFor(ctx, err)
		}
		if err := s.stillKnows(known); err != nil {
			return err
		}
		a.Moved() // a client that takes nothing is cut off while others wait
		if err := stream.Send(&etcdpb.RangeStreamResponse{RangeResponse: out}); err != nil || last {
			return err
		}
	}
}

// pages reads a range in parts.
type pages struct {
	*kvServer
	key, end []byte // what is left
	how      scope.Range
	sure     bool  // all scopes must be known up to the revision
	count    int64 // of keys read
	revision int64 // that was the newest at the beginning
}

// begin finds the revision that all parts are read as of: if the read is linearizable, one as of which nothing
// is missing that was acknowledged.
func (p *pages) begin(ctx context.Context, linearizable bool) (err error) {
	if p.revision, err = p.node.Latest(ctx, p.key, p.end, linearizable); p.how.Revision <= 0 {
		p.how.Revision = p.revision
	}
	return err
}

// next reads a part.
func (p *pages) next(ctx context.Context) (out *etcdpb.RangeResponse, last bool, err error) {
	res, err := p.node.Page(ctx, p.key, p.end, p.how, p.maxRequest, p.sure)
	if err != nil {
		return nil, false, err
	}
	out = &etcdpb.RangeResponse{Kvs: kvsOf(res.Kvs)}
	n := int64(len(res.Kvs))
	if p.count += n; n > 0 {
		p.key = append(slices.Clip(res.Kvs[n-1].Key), 0)
	}
	limited := p.how.Limit > 0 && p.how.Limit == n
	if res.More && !limited && n > 0 {
		if p.how.Limit > 0 {
			p.how.Limit -= n
		}
		return out, false, nil
	}
	out.Header, out.More, out.Count = p.header(p.revision), res.More, p.count
	switch {
	case p.how.CountOnly:
		out.Count = res.Count
	case res.More: // what lies beyond the client's limit counts
		rest := scope.Range{Revision: p.how.Revision, CountOnly: true}
		res, err := p.node.Page(ctx, p.key, p.end, rest, p.maxRequest, p.sure)
		if err != nil {
			return nil, false, err
		}
		out.Count += res.Count
		out.More = res.Count > 0
	}
	return out, true, nil
}
