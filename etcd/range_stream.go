package etcd

import (
	"context"
	"math"
	"slices"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/aweigh/aweigh/etcd/etcdpb"
	"github.com/aweigh/aweigh/scope"
)

// RangeStream implements etcdpb.KVServer, as etcd 3.7 does: a range in parts, all as of
// one revision, of which each is about as large as a request may be. The last one has the header,
// the count, and whether there is more. Nobody holds on to the state between parts, so that a stream whose
// revision is compacted meanwhile ends with an error.
func (s *kvServer) RangeStream(r *etcdpb.RangeRequest, stream grpc.ServerStreamingServer[etcdpb.RangeStreamResponse]) error {
	ctx, how := stream.Context(), rangeOf(r)
	if err := wellFormedOp(&scope.Op{Kind: scope.OpRange, Key: r.Key, Range: &how}, 0); err != nil {
		return problem(ctx, err)
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
	p := pages{kvServer: s, key: r.Key, end: r.RangeEnd, how: how, left: math.MaxInt64, limit: pageKeys}
	if r.Limit > 0 {
		p.left = r.Limit
	}
	if err := p.begin(ctx, !r.Serializable); err != nil {
		return problem(ctx, err)
	}
	for {
		out, last, err := p.next(ctx)
		if err != nil {
			return problem(ctx, err)
		}
		if err := s.stillKnows(known); err != nil {
			return err
		}
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
	left     int64 // of the client's limit
	limit    int64 // of the next part
	count    int64 // of keys read
	revision int64 // that was the newest at the beginning
}

const (
	pageKeys = 10         // of the first part
	pageSize = maxRequest // bytes that a part aims at, within a factor of two
)

// begin finds the revision that all parts are read as of: if the read is linearizable, one as of which nothing
// is missing that was acknowledged.
func (p *pages) begin(ctx context.Context, linearizable bool) (err error) {
	if linearizable {
		p.revision, err = p.node.Latest(ctx, p.key, p.end)
	} else {
		var res scope.RangeResult
		res, err = p.node.Page(ctx, p.key, p.end, scope.Range{Limit: 1, KeysOnly: true})
		p.revision = res.Revision
	}
	if p.how.Revision <= 0 {
		p.how.Revision = p.revision
	}
	return err
}

// next reads a part.
func (p *pages) next(ctx context.Context) (out *etcdpb.RangeResponse, last bool, err error) {
	how := p.how
	how.Limit = min(p.limit, p.left)
	res, err := p.node.Page(ctx, p.key, p.end, how)
	if err != nil {
		return nil, false, err
	}
	out = &etcdpb.RangeResponse{Kvs: kvsOf(res.Kvs)}
	p.count += int64(len(res.Kvs))
	if p.left -= int64(len(res.Kvs)); res.More && p.left > 0 {
		p.key = append(slices.Clip(res.Kvs[len(res.Kvs)-1].Key), 0)
		p.size(proto.Size(out))
		return out, false, nil
	}
	out.Header, out.More, out.Count = p.header(p.revision), res.More, p.count
	switch {
	case how.CountOnly:
		out.Count = res.Count
	case res.More: // what lies beyond the client's limit counts
		rest := scope.Range{Revision: p.how.Revision, CountOnly: true}
		res, err := p.node.Page(ctx, append(slices.Clip(res.Kvs[len(res.Kvs)-1].Key), 0), p.end, rest)
		if err != nil {
			return nil, false, err
		}
		out.Count += res.Count
	}
	return out, true, nil
}

// size has the next part be of another number of keys if the last was too small or too large.
func (p *pages) size(last int) {
	switch {
	case last < pageSize/2:
		p.limit *= 2
	case last > 2*pageSize:
		p.limit = max(p.limit/2, 1)
	}
}
