// Package devnet makes and runs a network of anchors on one machine, for
// trying things out. Each is a complete node with a directory of its own, which
// "aweigh node" could run as well.
package devnet

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/home"
	"github.com/aweigh/aweigh/internal/ports"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
)

// Network is a devnet on disk.
type Network struct {
	Dir     string
	Genesis scope.Genesis
	Nodes   []Node
	Admin   Admin // empty: its ports are insecure
}

// Node is one of its nodes.
type Node struct {
	Name string
	Home home.Dir
	Peer machine.Peer
	home.Settings
}

// MaxNodes bounds the nodes of a devnet: they share one machine.
const MaxNodes = 64

// ErrDifferent means that there is a devnet already, and not as asked for.
var ErrDifferent = errors.New("devnet: there is another one in the directory")

// ErrOccupied means that a directory holds something else than a devnet.
var ErrOccupied = errors.New("devnet: the directory is not empty, and holds no devnet")

func homeOf(dir string, i int) home.Dir {
	return home.Dir(filepath.Join(dir, "node"+strconv.Itoa(i+1)))
}

// Make makes a devnet in a directory, or opens the one that is there, which
// must have as many nodes, or nodes must be 0, and the same mode, or that be 0. Its ports are insecure, except of one
// that MakeSecure made.
func Make(dir string, nodes int, mode quorum.Mode) (*Network, error) {
	return makeOrOpen(dir, nodes, mode, false, scope.DefaultPolicy)
}

// MakeOpen is Make for a devnet in which anyone may write. One that is there keeps its policy.
func MakeOpen(dir string, nodes int, mode quorum.Mode) (*Network, error) {
	return makeOrOpen(dir, nodes, mode, false, scope.OpenPolicy)
}

// MakeSecure is Make for a devnet whose ports take certificates of its own authority. One that is there must be such.
func MakeSecure(dir string, nodes int, mode quorum.Mode) (*Network, error) {
	return makeOrOpen(dir, nodes, mode, true, scope.DefaultPolicy)
}

// MakeUnder is Make, or MakeSecure, for a devnet with a policy. One that is there must have been made with the same.
func MakeUnder(dir string, nodes int, policy scope.Policy, secure bool) (*Network, error) {
	n, err := makeOrOpen(dir, nodes, policy.Rules.Mode, secure, func(quorum.Mode) scope.Policy { return policy })
	if err == nil && n.Genesis.Policy.Hash() != policy.Hash() {
		err = fmt.Errorf("%w: it was made with another policy: %s; \"aweigh policy set FILE\" changes it", ErrDifferent, dir)
	}
	return n, err
}

func makeOrOpen(dir string, nodes int, mode quorum.Mode, secure bool, policy func(quorum.Mode) scope.Policy) (*Network, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("devnet: %w", err)
	}
	there := 0
	for homeOf(dir, there).Exists() {
		there++
	}
	switch {
	case there > 0 && nodes > 0 && nodes != there:
		return nil, fmt.Errorf("%w: it has %d nodes, not %d: %s", ErrDifferent, there, nodes, dir)
	case there > 0:
		n, err := open(dir, there, mode)
		if err == nil && secure && n.Admin == (Admin{}) {
			err = fmt.Errorf("%w: it was made without --secure: %s; name another directory with --data-dir, or leave out --secure", ErrDifferent, dir)
		}
		return n, err
	case nodes == 0:
		nodes = 4
	}
	if nodes < 1 || nodes > MaxNodes {
		return nil, fmt.Errorf("devnet: %d nodes, between 1 and %d are taken", nodes, MaxNodes)
	}
	if mode == 0 {
		mode = quorum.BFT
	}
	if err := vacant(dir); err != nil {
		return nil, err
	}
	if err := create(dir, nodes, policy(mode), secure); err != nil {
		return nil, err
	}
	return open(dir, nodes, mode)
}

// vacant fails if a directory holds anything but the beginnings of a devnet: it is
// another program's.
func vacant(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("devnet: %w", err)
	}
	for _, e := range entries {
		rest, ours := strings.CutPrefix(e.Name(), "node")
		if _, err := strconv.Atoi(rest); (ours && err == nil || e.Name() == tlsDir) && e.IsDir() || e.Name() == "lost+found" {
			continue
		}
		return fmt.Errorf("%w: %s has %s in it; name a new or an empty directory with --data-dir", ErrOccupied, dir, e.Name())
	}
	return nil
}

// create writes the nodes' directories, the genesis of each last.
func create(dir string, nodes int, policy scope.Policy, secure bool) error {
	free, err := ports.Free(2 * nodes)
	if err != nil {
		return err
	}
	founders := make([]machine.Founder, nodes)
	boot := make([]string, nodes)
	for i := range nodes {
		h := homeOf(dir, i)
		var keys [2]votes.PrivateKey
		for j, name := range []string{h.Identity(), h.Anchor()} {
			if keys[j], err = h.NewKey(name); err != nil {
				return err
			}
		}
		id, err := machine.PeerOf(keys[0])
		if err != nil {
			return err
		}
		founders[i] = machine.Founder{Name: "node" + strconv.Itoa(i+1), Key: keys[1].Public(), Peer: id}
		boot[i] = fmt.Sprintf("/ip4/127.0.0.1/tcp/%d/p2p/%s", free[2*i], id)
	}
	g, err := machine.NewGenesis("devnet", aweigh.InstantOf(time.Now()), policy, founders...)
	if err != nil {
		return err
	}
	for i := range nodes {
		h, port := homeOf(dir, i), free[2*i]
		_ = os.Remove(h.Config()) // of an attempt that was cut off: the ports are new
		s := home.Settings{
			Name: founders[i].Name,
			Listen: []string{
				fmt.Sprintf("/ip4/127.0.0.1/tcp/%d", port),
				fmt.Sprintf("/ip4/127.0.0.1/udp/%d/quic-v1", port),
			},
			Bootstrap: slices.Delete(slices.Clone(boot), i, i+1),
			API:       fmt.Sprintf("127.0.0.1:%d", free[2*i+1]), Insecure: !secure,
		}
		if secure {
			f := filesIn(dir)
			s.APICert, s.APIKey, s.APICA, s.APIAdmins = f.server.Cert, f.server.Key, f.admin.CA, []string{scope.RootName}
		}
		if err := h.SaveSettings(s); err != nil {
			return err
		}
	}
	for i := range nodes {
		if err := homeOf(dir, i).SaveGenesis(g); err != nil {
			return err
		}
	}
	return nil
}

// open reads the directories of a devnet.
func open(dir string, nodes int, mode quorum.Mode) (*Network, error) {
	n := &Network{Dir: dir}
	for i := range nodes {
		h := homeOf(dir, i)
		g, err := h.ReadGenesis()
		if err != nil {
			return nil, err
		}
		if i == 0 {
			n.Genesis = g
		}
		if g.Hash() != n.Genesis.Hash() || len(g.Anchors) != nodes {
			return nil, fmt.Errorf("%w: %s is incomplete; remove it and start again", ErrDifferent, dir)
		}
		s, err := h.ReadSettings()
		if err != nil {
			return nil, err
		}
		identity, _, err := h.Keys()
		if err != nil {
			return nil, err
		}
		id, err := machine.PeerOf(identity)
		if err != nil {
			return nil, err
		}
		if secure := s.APICA != ""; !secure {
			s.Insecure = true // it may be of an earlier version
		} else if n.Admin, err = issue(dir); err != nil {
			return nil, err
		}
		n.Nodes = append(n.Nodes, Node{Name: s.Name, Home: h, Peer: id, Settings: s})
	}
	if has := n.Genesis.Policy.Rules.Mode; mode != 0 && mode != has {
		return nil, fmt.Errorf("%w: its mode is %s, not %s: %s", ErrDifferent, has, mode, dir)
	}
	return n, nil
}

// APIs are the addresses of all nodes: their ports if those are insecure, and their sockets otherwise.
func (n *Network) APIs() ([]string, error) {
	out := make([]string, len(n.Nodes))
	for i, x := range n.Nodes {
		if out[i] = x.API; n.Admin == (Admin{}) {
			continue
		}
		path, err := x.Home.Socket()
		if err != nil {
			return nil, err
		}
		out[i] = "unix://" + path
	}
	return out, nil
}

// ServeEtcd makes every node serve etcd's API, for this run: the first at the
// address, the others at free ports. An address that is taken is an error if it was
// chosen; otherwise the first node, too, gets a free port.
func (n *Network) ServeEtcd(address string, chosen bool) error {
	free, err := ports.Free(len(n.Nodes))
	if err != nil {
		return err
	}
	for i := range n.Nodes {
		x := &n.Nodes[i]
		x.Etcd = fmt.Sprintf("127.0.0.1:%d", free[i])
		x.EtcdCert, x.EtcdKey, x.EtcdCA = x.APICert, x.APIKey, x.APICA
	}
	l, err := net.Listen("tcp", address)
	if err != nil && chosen {
		return fmt.Errorf("devnet: %w", err)
	}
	if err == nil {
		n.Nodes[0].Etcd = l.Addr().String()
		return l.Close()
	}
	return nil
}

// Free reports why nothing can listen on an address, host:port.
func Free(address string) error {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("devnet: %w", err)
	}
	return l.Close()
}
