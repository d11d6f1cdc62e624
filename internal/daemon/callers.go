package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/aweigh/aweigh/api"
	"github.com/aweigh/aweigh/etcd/auth"
	"github.com/aweigh/aweigh/internal/authn"
	"github.com/aweigh/aweigh/internal/authn/oidc"
	"github.com/aweigh/aweigh/internal/certs"
	"github.com/aweigh/aweigh/internal/home"
	"github.com/aweigh/aweigh/node"
	"github.com/aweigh/aweigh/votes"
)

// callers are what all ports of a node know of callers.
type callers struct {
	guard  *auth.Guard
	tokens *oidc.Authenticator // nil without oidc-issuers
	counts authn.Counts
	log    *slog.Logger
}

func newCallers(n *node.Node, identity votes.PrivateKey, s home.Settings, log *slog.Logger) (c *callers, err error) {
	c = &callers{guard: auth.NewGuard(n, identity), log: log}
	issuers, err := issuersOf(s)
	if err != nil || len(issuers) == 0 {
		return c, err
	}
	g := n.Root().Genesis()
	c.tokens, err = oidc.New(oidc.Config{Network: g.Network(), Issuers: issuers, Report: c.report, Clock: n.Clock, Passed: passed(n)})
	if err != nil {
		return nil, fmt.Errorf("%w: oidc-issuers: %w", ErrSettings, err)
	}
	return c, nil
}

// passed returns the time of the newest final block that a node has of its root scope. Anchors of a quorum saw it pass,
// so it counts where the clock of this machine is behind.
func passed(n *node.Node) func() time.Time {
	return func() time.Time { return n.Root().LastHead().Time.Time() }
}

// clockOf is the clock by which the credentials of a node's callers end.
func clockOf(n *node.Node) func() time.Time {
	return func() time.Time {
		now := n.Clock()
		if p := passed(n)(); p.After(now) {
			return p
		}
		return now
	}
}

// issuersOf are the issuers of callers' tokens.
func issuersOf(s home.Settings) ([]oidc.Issuer, error) {
	if s.OIDC == "" {
		return nil, nil
	}
	text, err := os.ReadFile(s.OIDC)
	if err != nil {
		return nil, fmt.Errorf("%w: oidc-issuers: %w", ErrSettings, err)
	}
	all, err := oidc.DecodeIssuers(text)
	if err == nil && len(all) == 0 {
		err = errors.New("the file names no issuer")
	}
	if err != nil {
		return nil, fmt.Errorf("%w: oidc-issuers: %s: %w", ErrSettings, s.OIDC, err)
	}
	return all, nil
}

// report logs the first failure to fetch an issuer's keys, and that they came again.
func (c *callers) report(x oidc.Status) {
	switch {
	case x.Failed == 1:
		c.log.Warn("the keys of an issuer of tokens cannot be fetched; those known stay in use",
			"issuer", x.Issuer, "error", x.Err)
	case x.Err == nil:
		c.log.Debug("the keys of an issuer of tokens were fetched", "issuer", x.Issuer, "keys", x.Keys)
	}
}

// run fetches the keys of issuers until ctx ends.
func (c *callers) run(ctx context.Context) error {
	if c.tokens != nil {
		c.tokens.Run(ctx)
	}
	return nil
}

// row finds the callers of a port.
func (c *callers) row(anonymous bool) *authn.Row {
	row := &authn.Row{Anonymous: anonymous, Count: c.counts.Count, Log: c.log}
	if c.tokens != nil {
		row.Authenticators = append(row.Authenticators, c.tokens)
	}
	row.Authenticators = append(row.Authenticators, authn.Users(c.guard.UserOf), authn.Certs{}, authn.Sockets{})
	return row
}

// A node answers the user that runs it, by its socket. A port for clients needs certificates of clients, or users of
// etcd, or a setting that says that it is open.

func apiFiles(s home.Settings) certs.Files {
	return certs.Files{Cert: s.APICert, Key: s.APIKey, ClientCA: s.APICA, Revoked: s.APICRL, Optional: s.OIDC != ""}
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
	case !files.IsZero() && (files.Cert == "" || files.Key == "" || files.ClientCA == "" && s.OIDC == ""):
		return fmt.Errorf("%w: api-cert, api-key and api-client-ca go together; with oidc-issuers, the first two are enough",
			ErrSettings)
	case files.IsZero() && len(s.APIAdmins) > 0:
		return fmt.Errorf("%w: api-admins names callers with certificates or tokens, and takes api-cert and api-key, and "+
			"api-client-ca or oidc-issuers", ErrSettings)
	case files.IsZero() && !s.Insecure:
		return fmt.Errorf("%w: api-listen %s would take every client that reaches it: leave api-listen out, as the node's user reaches the node by its socket; "+
			"or ask clients for certificates, with api-cert, api-key and api-client-ca, or for tokens, with oidc-issuers in place of the last; or accept every client, with insecure", ErrSettings, s.API)
	}
	return checkAdmins(s)
}

// checkAdmins refuses texts that no caller has: those that begin as an identity, and are none that needs to be listed.
func checkAdmins(s home.Settings) error {
	for _, text := range s.APIAdmins {
		id, err := authn.Parse(text)
		kind, _, named := strings.Cut(text, ":")
		switch {
		case err == nil && (id.Kind == authn.Anonymous || id.Kind == authn.Local):
			err = errors.New("such a caller uses the anchor's key by the node's socket or not at all, and is not listed")
		case err == nil, !named || !slices.Contains([]string{"cert", "oidc", "user", "local"}, kind): // a common name
			continue
		}
		return fmt.Errorf("%w: api-admins: no caller is %q: %w; name a common name, such as alice, or an identity as \"aweigh whoami\" prints it: "+
			"cert:cn:NAME, cert:dns:HOST, cert:uri:URI, cert:spiffe://DOMAIN/PATH, oidc:ISSUER#SUBJECT or user:NAME", ErrSettings, text, err)
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
	if s.API != "" && apiFiles(s).IsZero() {
		ports = append(ports, "api-listen "+s.API)
	}
	if s.Etcd != "" && s.EtcdCA == "" {
		ports = append(ports, "etcd-listen "+s.Etcd)
	}
	return ports
}
