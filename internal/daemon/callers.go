package daemon

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/aweigh/aweigh/api"
	"github.com/aweigh/aweigh/etcd/auth"
	"github.com/aweigh/aweigh/internal/authn"
	"github.com/aweigh/aweigh/internal/certs"
	"github.com/aweigh/aweigh/internal/home"
	"github.com/aweigh/aweigh/node"
	"github.com/aweigh/aweigh/votes"
)

// callers are what all ports of a node know of callers.
type callers struct {
	guard  *auth.Guard
	counts authn.Counts
	log    *slog.Logger
}

func newCallers(n *node.Node, identity votes.PrivateKey, log *slog.Logger) *callers {
	return &callers{guard: auth.NewGuard(n, identity), log: log}
}

// row finds the callers of a port.
func (c *callers) row(anonymous bool) *authn.Row {
	return &authn.Row{
		Authenticators: []authn.Authenticator{authn.Users(c.guard.UserOf), authn.Certs{}, authn.Sockets{}},
		Anonymous:      anonymous, Count: c.counts.Count, Log: c.log,
	}
}

// A node answers the user that runs it, by its socket. A port for clients needs certificates of clients, or users of
// etcd, or a setting that says that it is open.

func apiFiles(s home.Settings) certs.Files {
	return certs.Files{Cert: s.APICert, Key: s.APIKey, ClientCA: s.APICA, Revoked: s.APICRL}
}

func etcdFiles(s home.Settings) certs.Files {
	return certs.Files{Cert: s.EtcdCert, Key: s.EtcdKey, ClientCA: s.EtcdCA, Revoked: s.EtcdCRL}
}

// checkAPI reports whether api-listen says which clients it takes.
func checkAPI(s home.Settings) error {
	files := apiFiles(s)
	if s.API == "" {
		if !files.IsZero() || len(s.APIAdmins) > 0 {
			return fmt.Errorf("%w: settings of TLS or admins for clients, and no api-listen", ErrSettings)
		}
		return nil
	}
	if err := api.CheckAddress(s.API); err != nil {
		return fmt.Errorf("%w: api-listen: %w", ErrSettings, err)
	}
	switch {
	case !files.IsZero() && (files.Cert == "" || files.Key == "" || files.ClientCA == ""):
		return fmt.Errorf("%w: api-cert, api-key and api-client-ca go together", ErrSettings)
	case files.IsZero() && len(s.APIAdmins) > 0:
		return fmt.Errorf("%w: api-admins names certificates of clients, and takes api-cert, api-key and api-client-ca", ErrSettings)
	case files.IsZero() && !s.Insecure:
		return fmt.Errorf("%w: api-listen %s would take every client that reaches it: leave api-listen out, as the node's user reaches the node by its socket; "+
			"or ask clients for certificates, with api-cert, api-key and api-client-ca; or accept every client, with insecure", ErrSettings, s.API)
	}
	return nil
}

// checkEtcd reports whether etcd-listen says which clients it takes, as far as that does not depend on users.
func checkEtcd(s home.Settings) error {
	if err := api.CheckAddress(s.Etcd); err != nil {
		return fmt.Errorf("%w: etcd-listen: %w", ErrSettings, err)
	}
	if s.EtcdCA == "" && !s.Insecure && etcdFiles(s).IsZero() && !s.EtcdAuto && !api.Loopback(s.Etcd) {
		return fmt.Errorf("%w: etcd-listen %s would take passwords of users without TLS from other machines: %s", ErrSettings, s.Etcd, etcdWays)
	}
	return nil
}

// etcdWays are the ways to have etcd's API.
const etcdWays = "ask clients for certificates, with etcd-cert-file, etcd-key-file and etcd-trusted-ca-file; " +
	"or enable users (by one of the other two ways, then without) and serve TLS, or a loopback address; or accept every client, with insecure"

// usersOnly reports whether etcd's API is for identified users alone. If the network has none, as far as this node
// knows, the node does not serve it.
func usersOnly(ctx context.Context, s home.Settings, n *node.Node) (bool, error) {
	if s.EtcdCA != "" || s.Insecure {
		return false, nil
	}
	a, err := n.Access(ctx, false)
	if err != nil {
		return false, err
	}
	if !a.Enabled {
		return false, fmt.Errorf("%w: etcd-listen %s would take every client that reaches it, as no users are enabled as far as this node knows: %s", ErrSettings, s.Etcd, etcdWays)
	}
	return true, nil
}

// InsecurePorts are the ports that take clients without certificates, for people.
func InsecurePorts(s home.Settings) (ports []string) {
	if !s.Insecure {
		return nil
	}
	if s.API != "" && s.APICA == "" {
		ports = append(ports, "api-listen "+s.API)
	}
	if s.Etcd != "" && s.EtcdCA == "" {
		ports = append(ports, "etcd-listen "+s.Etcd)
	}
	return ports
}
