package common

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aweigh/aweigh/test/etcdcompat/ports"
	"go.etcd.io/etcd/tests/v3/framework/config"
	"go.etcd.io/etcd/tests/v3/framework/e2e"
	"go.etcd.io/etcd/tests/v3/framework/interfaces"
)

// network is a network of nodes on this machine, made with "aweigh init", and
// nothing is written to it: its first put is at revision 2, as in a new etcd.
type network struct {
	t      testing.TB
	dir    string
	client e2e.ClientConfig
	nodes  []*member
}

// newNetwork makes one, which does not run yet.
func newNetwork(t testing.TB, c config.ClusterConfig) (*network, error) {
	dir, err := os.MkdirTemp("", "aweigh-") // t.TempDir has the test's name, and sockets have short paths
	if err != nil {
		return nil, err
	}
	n := &network{t: t, dir: dir}
	t.Cleanup(func() { _ = n.Close(); _ = os.RemoveAll(dir) })
	var flags []string
	switch c.ClientTLS {
	case config.NoTLS:
	case config.AutoTLS:
		n.client = e2e.ClientConfig{ConnectionType: e2e.ClientTLS, AutoTLS: true}
		flags = []string{"--etcd-auto-tls"}
	case config.ManualTLS:
		n.client = e2e.ClientConfig{ConnectionType: e2e.ClientTLS}
		flags = []string{"--etcd-cert-file", e2e.CertPath, "--etcd-key-file", e2e.PrivateKeyPath, "--etcd-trusted-ca-file", e2e.CaPath}
	default:
		return nil, fmt.Errorf("TLS %q is not known", c.ClientTLS)
	}
	free, err := ports.Free(2 * c.ClusterSize)
	if err != nil {
		return nil, err
	}
	for i := range c.ClusterSize {
		n.nodes = append(n.nodes, newMember(n, fmt.Sprintf("node%d", i+1), free[2*i:], flags))
	}
	return n, n.found(c.QuotaBackendBytes)
}

// found makes the nodes' directories, and the genesis in them, with a bound on what is held;
// 0: none.
func (n *network) found(quota int64) error {
	var lines strings.Builder
	for _, m := range n.nodes {
		line, err := m.init("--anchor-info")
		if err != nil {
			return err
		}
		lines.WriteString(line)
	}
	founders := filepath.Join(n.dir, "founders.yaml")
	if err := os.WriteFile(founders, []byte(lines.String()), 0o600); err != nil {
		return err
	}
	policy := filepath.Join(n.dir, "policy.yaml")
	if err := os.WriteFile(policy, fmt.Appendf(nil, "limits:\n  scope_bytes: %d\n", quota), 0o600); err != nil {
		return err
	}
	for i, m := range n.nodes {
		genesis := []string{"--mode", "crash", "--policy", policy}
		if i > 0 {
			genesis = []string{"--genesis", filepath.Join(n.nodes[0].dir, "genesis.cbor")}
		}
		if _, err := m.init(append(genesis, "--anchors", founders)...); err != nil {
			return err
		}
	}
	return nil
}

// start starts all nodes, and waits until each reads with a quorum. None runs if
// it fails.
func (n *network) start(ctx context.Context) (err error) {
	defer func() {
		if err != nil {
			_ = n.end()
		}
	}()
	for _, m := range n.nodes {
		if err := m.launch(); err != nil {
			return err
		}
	}
	for _, m := range n.nodes {
		if err := m.await(ctx, config.GetOptions{Timeout: time.Second}); err != nil {
			return err
		}
	}
	return nil
}

// Members are all nodes, whether they run or not.
func (n *network) Members() (all []interfaces.Member) {
	for _, m := range n.nodes {
		all = append(all, m)
	}
	return all
}

// Endpoints are the addresses of all nodes for clients of etcd.
func (n *network) Endpoints() (all []string) {
	for _, m := range n.nodes {
		all = append(all, m.endpoint)
	}
	return all
}

// Client is etcdctl, which is told of all nodes.
func (n *network) Client(opts ...config.ClientOption) (interfaces.Client, error) {
	return e2e.NewEtcdctl(n.client, n.Endpoints(), opts...)
}

// WaitLeader is the index of the node that leads in the eyes of all that run, once
// they agree on one that does.
func (n *network) WaitLeader(t testing.TB) int {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for ; ctx.Err() == nil; time.Sleep(pause) {
		if leader := n.leader(ctx); leader >= 0 {
			return leader
		}
	}
	t.Fatal("the nodes do not agree on a leader among them")
	return -1
}

// leader is the index of the leader, or -1 if there is none that all know of.
func (n *network) leader(ctx context.Context) int {
	ids := make([]uint64, len(n.nodes)) // 0 of those that do not run
	var leaders []uint64
	for i, m := range n.nodes {
		if !m.runs() {
			continue
		}
		s, err := m.Client().Status(ctx)
		if err != nil {
			return -1
		}
		ids[i] = s[0].Header.MemberId
		leaders = append(leaders, s[0].Leader)
	}
	if leaders = slices.Compact(leaders); len(leaders) != 1 || leaders[0] == 0 {
		return -1
	}
	return slices.Index(ids, leaders[0])
}

// Close ends all nodes. The test fails if one does not end well, or has ended before.
func (n *network) Close() error {
	err := n.end()
	if err != nil {
		n.t.Error(err)
	}
	return err
}

func (n *network) end() error {
	var errs []error
	for _, m := range n.nodes {
		errs = append(errs, m.end())
	}
	return errors.Join(errs...)
}
