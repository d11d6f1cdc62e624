package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/knadh/koanf/v2"
	"github.com/spf13/cobra"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/authn/device"
	"github.com/aweigh/aweigh/internal/running"
)

// tokenOf returns the source of the token that nodes at some addresses are shown, nil for none. That of a login goes to
// nodes over TLS alone: a node's own socket knows its owner.
func tokenOf(k *koanf.Koanf, addresses []string) (func(context.Context) (string, error), error) {
	if name := k.String("token-file"); name != "" {
		f := &tokenFile{name: name}
		if _, err := f.read(context.Background()); err != nil {
			return nil, fmt.Errorf("%w: token-file: %w", errUsage, err)
		}
		return f.read, nil
	}
	for _, a := range addresses {
		if !strings.HasPrefix(a, "https://") || k.String("cert") != "" {
			return nil, nil
		}
	}
	all, err := device.Logins("")
	switch {
	case err != nil || len(all) == 0:
		return nil, nil
	case len(all) > 1:
		return nil, fmt.Errorf("%w: there are logins at several issuers or for several networks: end one with "+
			"\"aweigh logout\", or name the file of a token with --token-file", errUsage)
	}
	l := &login{of: all[0]}
	return l.current, nil
}

// tokenFile is a file with a token, which another program may replace, as Kubernetes does.
type tokenFile struct {
	name string

	mu      sync.Mutex
	changed time.Time
	token   string
}

const maxToken = 64 << 10

// read returns the token. Errors do not quote the file.
func (f *tokenFile) read(context.Context) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	info, err := os.Stat(f.name)
	if err != nil {
		return "", err
	}
	if f.token != "" && info.ModTime().Equal(f.changed) {
		return f.token, nil
	}
	if info.Size() > maxToken {
		return "", fmt.Errorf("%s has %d bytes, and is no token", f.name, info.Size())
	}
	text, err := os.ReadFile(f.name)
	if err != nil {
		return "", err
	}
	token := strings.TrimSpace(string(text))
	if token == "" || strings.ContainsAny(token, " \t\r\n") {
		return "", fmt.Errorf("%s does not hold one token", f.name)
	}
	f.token, f.changed = token, info.ModTime()
	return token, nil
}

// errIssuer is wrapped where an issuer does not answer.
var errIssuer = errors.New("the issuer cannot be reached")

// login is the token of "aweigh login".
type login struct {
	of device.Config

	mu    sync.Mutex
	token device.Token
}

// freshFor is for how long a token is used before the file is read again, at least until it ends.
const freshFor = time.Minute

func (l *login) current(ctx context.Context) (string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if time.Until(l.token.Until) > freshFor {
		return l.token.ID, nil
	}
	t, err := device.Current(ctx, l.of)
	if errors.Is(err, device.ErrNone) {
		err = fmt.Errorf("%w: aweigh login --issuer %s --network %s", err, l.of.Issuer, l.of.Network)
	}
	if err == nil {
		l.token = t
	}
	return t.ID, err
}

// loginFlags are the flags of a login, by which it is found again.
func loginFlags(c *cobra.Command) func() (device.Config, error) {
	issuer := c.Flags().String("issuer", "", "URL of the issuer of OpenID Connect, as nodes name it in oidc-issuers")
	network := c.Flags().String("network", "", "identity of the network that the token is for, in hexadecimal (default:\n"+
		"that of the nodes that run here)")
	return func() (out device.Config, err error) {
		out.Issuer = *issuer
		text := *network
		if text == "" {
			found, err := running.Find()
			if err != nil {
				return out, fmt.Errorf("%w: no network runs here: name one with --network, as \"aweigh status\" prints it",
					errUsage)
			}
			text = found.Network
		}
		if out.Network, err = aweigh.ParseHash(text); err != nil {
			err = fmt.Errorf("%w: --network: %w", errUsage, err)
		}
		return out, err
	}
}

func (a *app) login() *cobra.Command {
	c := &cobra.Command{
		Use: "login", Short: "Log in at an issuer of OpenID Connect", Args: cobra.NoArgs,
		Long: "Prints a URL and a code to enter there (RFC 8628), and keeps the token in a file that only this\n" +
			"user can read. Commands show it to nodes at https:// addresses, and renew it while the issuer\n" +
			"allows it. The token is for one network. Programs take --token-file instead.",
		Example: "  aweigh login --issuer https://issuer.example --network 4f1c…\n  aweigh whoami --api https://node.example:7177",
	}
	of := loginFlags(c)
	id := c.Flags().String("client-id", "", "by which the issuer knows the program, and nodes its tokens, as their\n"+
		"audience (default: the network's identity)")
	ca := c.Flags().String("issuer-ca", "", "PEM file of the issuers of its server's certificate (default: the system's)")
	_ = c.MarkFlagRequired("issuer")
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		cfg, err := of()
		if err != nil {
			return err
		}
		cfg.Client, cfg.CA = *id, *ca
		t, err := device.Login(cmd.Context(), cfg, a.err)
		var unknown *tls.CertificateVerificationError
		if errors.As(err, &unknown) {
			return fmt.Errorf("%w: %w; name the issuers of its server's certificate with --issuer-ca FILE", errUsage, err)
		}
		var dial *net.OpError
		if errors.As(err, &dial) {
			return fmt.Errorf("%w: %w", errIssuer, err)
		}
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(a.out, "logged in at %s for network %s; the token ends at %s\n",
			t.Issuer, t.Network.Short(), t.Until.Format(time.RFC3339))
		return err
	}
	return c
}

func (a *app) logout() *cobra.Command {
	c := &cobra.Command{
		Use: "logout", Short: "Remove the tokens of logins", Args: cobra.NoArgs,
		Long: "Removes the files of tokens, of all logins or of those at one issuer. The issuer does not learn of\n" +
			"it, and a copy of a token is good until it ends.",
	}
	issuer := c.Flags().String("issuer", "", "only of this issuer")
	c.RunE = func(*cobra.Command, []string) error {
		all, err := device.Logins("")
		if err != nil {
			return err
		}
		all = slices.DeleteFunc(all, func(l device.Config) bool { return *issuer != "" && l.Issuer != *issuer })
		for _, l := range all {
			if err := device.Logout(l); err != nil {
				return err
			}
			fmt.Fprintf(a.out, "logged out at %s of network %s\n", l.Issuer, l.Network.Short())
		}
		if len(all) == 0 {
			fmt.Fprintln(a.out, "there was no login")
		}
		return nil
	}
	return c
}

func (a *app) whoami() *cobra.Command {
	c := &cobra.Command{
		Use: "whoami", Short: "Show for whom a node takes this client, and its rights", Args: cobra.NoArgs,
		Long: "The identity is that of a token, a certificate, or the user at the node's socket. Its user is the\n" +
			"one that etcd's users and roles give rights to: of a certificate without a URI and\n" +
			"a DNS name, the common name; of any other identity but a user's token, the user whose name is\n" +
			"its text.",
		Example: "  aweigh whoami\n  aweigh whoami --api https://node.example:7177 --token-file /var/run/secrets/tokens/aweigh",
	}
	return a.asking(c, func(ctx context.Context, s *session, _ []string) error {
		ctx, cancel := s.limited(ctx)
		defer cancel()
		r, err := s.Client.WhoAmI(ctx)
		if err != nil {
			return err
		}
		return s.Printer.WhoAmI(r)
	})
}
