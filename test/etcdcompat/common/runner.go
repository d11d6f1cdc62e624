package common

import (
	"context"
	"strings"
	"testing"

	"go.etcd.io/etcd/tests/v3/framework/config"
	"go.etcd.io/etcd/tests/v3/framework/e2e"
	"go.etcd.io/etcd/tests/v3/framework/interfaces"
)

// Runner starts networks of nodes for etcd's tests. All else is as where etcd runs
// them on its own processes.
type Runner struct{ interfaces.TestRunner }

// NewRunner is a runner of the program that AWEIGH_PROGRAM names, and of the
// etcdctl in the folder that the flag -bin-dir names.
func NewRunner() Runner { return Runner{e2e.NewE2eRunner()} }

// NewCluster starts a network of as many anchors as etcd would have members. A half of
// them may stop, as in etcd. TLS is that of the clients: nodes never talk to each
// other without encryption. The other settings are about what Aweigh does not have.
func (Runner) NewCluster(ctx context.Context, t testing.TB, opts ...config.ClusterOption) interfaces.Cluster {
	t.Helper()
	for try := 1; ; try++ {
		n, err := newNetwork(t, config.NewClusterConfig(opts...))
		if err == nil {
			err = n.start(ctx)
		}
		if err == nil {
			return n
		}
		// Somebody else may have come first to a port that was free.
		if try == 3 || !strings.Contains(err.Error(), "address already in use") {
			t.Fatalf("the network does not start: %v", err)
		}
	}
}
