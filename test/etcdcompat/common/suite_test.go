//go:build etcdcommon

package common

import (
	"go.etcd.io/etcd/tests/v3/framework/config"
	"go.etcd.io/etcd/tests/v3/framework/e2e"
)

// What etcd's tests leave open, under the names that they give it: where they run,
// on which clusters most of them do, and two options of its clients. Of the clusters that
// etcd takes, one is missing, PeerAutoTLS: nodes encrypt among themselves in one way.

func init() {
	testRunner = NewRunner()
	clusterTestCases = func() []testCase {
		return []testCase{
			{"NoTLS", config.ClusterConfig{ClusterSize: 1}},
			{"PeerTLS", config.ClusterConfig{ClusterSize: 3, PeerTLS: config.ManualTLS}},
			{"ClientTLS", config.ClusterConfig{ClusterSize: 1, ClientTLS: config.ManualTLS}},
			{"ClientAutoTLS", config.ClusterConfig{ClusterSize: 1, ClientTLS: config.AutoTLS}},
		}
	}
}

func WithAuth(user, password string) config.ClientOption { return e2e.WithAuth(user, password) }

func WithEndpoints(endpoints []string) config.ClientOption { return e2e.WithEndpoints(endpoints) }
