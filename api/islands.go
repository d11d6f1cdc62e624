package api

import (
	"context"
	"encoding/hex"
	"strings"

	"connectrpc.com/connect"

	"github.com/aweigh/aweigh"
	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/node"
	"github.com/aweigh/aweigh/scope"
)

// mostAside bounds the keys of an island that an answer lists as set aside.
const mostAside = 1000

// Islands implements aweighv1connect.NodeHandler.
func (s *service) Islands(ctx context.Context, req *connect.Request[aweighv1.IslandsRequest]) (*connect.Response[aweighv1.IslandsResponse], error) {
	heard := s.hear(ctx, req.Msg.Linearizable)
	v, err := s.at.Read(ctx, false)
	if err != nil {
		return nil, problem(err)
	}
	defer v.Close()
	out := &aweighv1.IslandsResponse{Header: s.named(s.read(v.Head(), heard))}
	of := make(map[aweigh.ScopeID]*aweighv1.Island)
	add := func(id aweigh.ScopeID, x *aweighv1.Island) {
		if strings.HasPrefix(hex.EncodeToString(id[:]), strings.ToLower(req.Msg.Id)) {
			of[id] = x
			out.Islands = append(out.Islands, x)
		}
	}
	for _, i := range s.node.Islands() {
		if i.Scope == s.at.Genesis().Hash() {
			x := islandOf(&i)
			x.Here, x.Open, x.Height, x.Revision = true, i.Open, uint64(i.Head.Height), i.Head.Revision
			x.Refused, x.Rests = i.Refused, i.Rests
			add(i.ID, x)
		}
	}
	all, err := v.Islands()
	if err != nil {
		return nil, problem(err)
	}
	for i := range all {
		r := &all[i]
		if of[r.ID] == nil {
			add(r.ID, &aweighv1.Island{Id: bytesOf(r.ID), Scope: bytesOf(v.Head().Scope), Prefix: r.Prefix, Members: s.called(r.Members)})
		}
		x := of[r.ID]
		if x == nil {
			continue
		}
		x.Weight, x.Total, x.Base = r.Weight, r.Total, uint64(r.Height)
		x.Recorded, x.DueNs, x.Entries, x.Stands, x.Aside = true, int64(r.Due), r.Size-r.Next, r.Stands, r.Aside
		if req.Msg.Id == "" || r.Aside == 0 {
			continue
		}
		motions, err := node.AsideMotions(v.State, r)
		if err != nil {
			return nil, problem(err)
		}
		err = v.AsideOf(r.ID, func(key []byte, a scope.SetAside) bool {
			if x.More = len(x.SetAside) == mostAside; x.More {
				return false
			}
			motion := motions[a.Mutation]
			x.SetAside = append(x.SetAside, &aweighv1.SetAside{
				Key: key, Mutation: bytesOf(a.Mutation), Author: bytesOf(a.Author), Reason: a.Reason, Motion: bytesOrNone(motion),
			})
			return true
		})
		if err != nil {
			return nil, problem(err)
		}
	}
	out.Partitions = s.partitions(func(p *node.Partition) error { return p.Why })
	return connect.NewResponse(out), nil
}

// partitions are those of the scope's policy, while the scope has no quorum, with a reason for those without an island.
func (s *service) partitions(why func(*node.Partition) error) (all []*aweighv1.Partition) {
	for _, p := range s.node.Partitions(s.scope) {
		x := &aweighv1.Partition{Prefix: p.Prefix, Island: bytesOrNone(p.Island)}
		if reason := why(&p); reason != nil {
			x.Why = reason.Error()
		}
		all = append(all, x)
	}
	return all
}

func islandOf(i *node.Island) *aweighv1.Island {
	x := &aweighv1.Island{
		Id: bytesOf(i.ID), Scope: bytesOf(i.Scope), Prefix: i.Prefix, Weight: i.Weight, Total: i.Total, Base: uint64(i.Base),
	}
	for k := range i.Members {
		x.Members = append(x.Members, i.Members[k].Name)
	}
	return x
}

// called are the names of anchors, as the scope's roster has them.
func (s *service) called(ids []aweigh.AnchorID) (names []string) {
	known := make(map[aweigh.AnchorID]string)
	for _, a := range s.at.Overview().Roster.Anchors {
		known[a.Key.ID()] = a.Name
	}
	for _, id := range ids {
		if name, ok := known[id]; ok {
			names = append(names, name)
			continue
		}
		names = append(names, id.Short())
	}
	return names
}
