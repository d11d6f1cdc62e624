package etcd

import (
	"context"
	"net/netip"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/etcd/etcdpb"
	"github.com/aweigh/aweigh/node"
)

// clusterServer implements etcd's Cluster.
type clusterServer struct {
	etcdpb.UnimplementedClusterServer
	*service
	address string // at which this node serves etcd's API
	secure  bool   // by TLS
}

// MemberList implements etcdpb.ClusterServer: the roster's anchors, and this node
// if it is none, as a learner. Where others serve etcd's API nobody tells this node,
// so only its own client URL is known.
func (s *clusterServer) MemberList(ctx context.Context, r *etcdpb.MemberListRequest) (*etcdpb.MemberListResponse, error) {
	err := s.look(ctx, node.Keys(), r.Linearizable, func(*node.View) error { return nil })
	if err != nil {
		return nil, problem(ctx, err)
	}
	o := s.node.Overview()
	addresses := map[node.Peer][]string{o.Peer: o.Addrs}
	for _, n := range o.Neighbours {
		if !n.Inbound { // else the address is not one to dial
			addresses[n.Peer] = append(addresses[n.Peer], n.Address+"/p2p/"+string(n.Peer))
		}
	}
	out := &etcdpb.MemberListResponse{Header: s.header(o.Head.Revision)}
	for _, a := range o.Roster.Anchors {
		out.Members = append(out.Members, s.memberOf(&o, &etcdpb.Member{
			ID: MemberOf(a.Key.ID()), Name: a.Name, PeerURLs: addresses[node.Peer(a.Peer)],
		}))
	}
	if o.Self == (aweigh.AnchorID{}) {
		out.Members = append(out.Members, s.memberOf(&o, &etcdpb.Member{
			ID: s.member, Name: o.Name, PeerURLs: o.Addrs, IsLearner: true,
		}))
	}
	return out, nil
}

// memberOf adds what only this node knows of itself. One that listens on every
// address does not know which of them its clients use.
func (s *clusterServer) memberOf(o *node.Overview, m *etcdpb.Member) *etcdpb.Member {
	if m.ID == s.member {
		if a, err := netip.ParseAddrPort(s.address); err == nil && !a.Addr().IsUnspecified() {
			scheme := "http"
			if s.secure {
				scheme = "https"
			}
			m.ClientURLs = []string{scheme + "://" + s.address}
		}
		if o.Name != "" {
			m.Name = o.Name
		}
	}
	return m
}
