package etcd

import (
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// instead has the advice for methods of etcd that are not served. The
// first prefix that fits applies.
var instead = []struct{ prefix, text string }{
	{"/etcdserverpb.Cluster/Member", "members are not added or removed here: \"aweigh join\" makes a node that serves the network's keys, and \"aweigh anchor\" lets anchors join and leave"},
	{"/etcdserverpb.Maintenance/MoveLeader", "the leader changes with every view by itself; there is nothing to move"},
	{"/etcdserverpb.Maintenance/Downgrade", "versions are not negotiated; stop the node and start the other program"},
	{"/etcdserverpb.KV/", "the API served is that of etcd 3.6, with RangeStream of 3.7"},
	{"", "this node serves the KV, Watch, Lease, Lock, Election, Auth, Cluster and Maintenance services of etcd 3.6; docs/etcd.md lists them"},
}

// unimplemented answers calls that no service has, if the caller may call at all.
func (s *service) unimplemented(_ any, stream grpc.ServerStream) error {
	method, _ := grpc.MethodFromServerStream(stream)
	who, err := s.caller(stream.Context())
	if err == nil && who != nil {
		err = who.MayRule()
	}
	if err != nil {
		return err
	}
	return status.Error(codes.Unimplemented, insteadOf(method))
}

func insteadOf(method string) string {
	for _, i := range instead {
		if strings.HasPrefix(method, i.prefix) {
			return "aweigh: " + strings.TrimPrefix(method, "/") + " is not served: " + i.text
		}
	}
	return ""
}
