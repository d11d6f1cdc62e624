package etcd

import (
	"context"
	"net/netip"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/etcd/etcdpb"
	"github.com/aweigh/aweigh/node"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/node/referral"
)

// Members is what the API needs of a node to show itself and others as members of a cluster.
type Members interface {
	Peer() machine.Peer
	Endpoints(ctx context.Context, peers []machine.Peer) map[machine.Peer]node.Endpoint
	ServeClients(urls []string)
}

// clusterServer implements etcd's Cluster.
type clusterServer struct {
	etcdpb.UnimplementedClusterServer
	*service
}

// MemberList implements etcdpb.ClusterServer: the roster's anchors, and this node if it
// is not an anchor, as a learner. Their addresses are the ones that they announce.
func (s *clusterServer) MemberList(ctx context.Context, r *etcdpb.MemberListRequest) (*etcdpb.MemberListResponse, error) {
	err := s.look(ctx, referral.Keys(), r.Linearizable, func(*node.View) error { return nil })
	if err != nil {
		return nil, statusFor(ctx, err)
	}
	o := s.node.Root().Overview()
	peers := []machine.Peer{o.Peer}
	for _, a := range o.Roster.Anchors {
		peers = append(peers, machine.Peer(a.Peer))
	}
	at := s.node.Endpoints(ctx, peers)
	out := &etcdpb.MemberListResponse{Header: s.header(0)} // without a revision, as in etcd
	for _, a := range o.Roster.Anchors {
		w := at[machine.Peer(a.Peer)]
		m := &etcdpb.Member{ID: MemberOf(a.Key.ID()), Name: a.Name, PeerURLs: w.Peers, ClientURLs: w.Clients}
		if m.ID == s.member && o.Name != "" {
			m.Name = o.Name
		}
		out.Members = append(out.Members, m)
	}
	if o.Self == (aweigh.AnchorID{}) {
		w := at[o.Peer]
		out.Members = append(out.Members, &etcdpb.Member{ID: s.member, Name: o.Name, PeerURLs: w.Peers, ClientURLs: w.Clients, IsLearner: true})
	}
	return out, nil
}

// announced are the URLs of an address at which etcd's API is served. One that listens on
// every address does not know which of them its clients use.
func announced(address string, secure bool) []string {
	a, err := netip.ParseAddrPort(address)
	if err != nil || a.Addr().IsUnspecified() {
		return nil
	}
	if secure {
		return []string{"https://" + address}
	}
	return []string{"http://" + address}
}
