package daemon

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"

	"github.com/aweigh/aweigh/api"
	"github.com/aweigh/aweigh/etcd"
	"github.com/aweigh/aweigh/internal/autocompact"
	"github.com/aweigh/aweigh/internal/certs"
	"github.com/aweigh/aweigh/internal/home"
	"github.com/aweigh/aweigh/internal/plain"
	"github.com/aweigh/aweigh/p2p"
	"github.com/aweigh/aweigh/scope"
)

// ErrSettings is wrapped by errors about settings that no node can run with.
var ErrSettings = errors.New("daemon: a setting makes no sense")

// maxName bounds the name of a node, or of a network, in bytes.
const maxName = 64

// Check reports whether a node can run with the settings, as far as they show
// it. Errors wrap ErrSettings.
func Check(s home.Settings) error {
	if _, err := pinOf(s); err != nil {
		return err
	}
	if err := CheckName("name", s.Name); err != nil {
		return err
	}
	if len(s.Listen) == 0 {
		return fmt.Errorf("%w: listen names no address; other nodes need one", ErrSettings)
	}
	for _, text := range s.Listen {
		if err := checkListen(text); err != nil {
			return fmt.Errorf("%w: listen: %q is no multiaddr, such as /ip4/0.0.0.0/tcp/4177: %w", ErrSettings, text, err)
		}
	}
	for _, text := range s.Announce {
		if _, err := ma.NewMultiaddr(text); err != nil {
			return fmt.Errorf("%w: announce: %q: %w", ErrSettings, text, err)
		}
	}
	if _, err := p2p.ParsePeers(s.Bootstrap); err != nil {
		return fmt.Errorf("%w: bootstrap: %w", ErrSettings, err)
	}
	if _, err := p2p.ParsePeers(s.Relays); err != nil {
		return fmt.Errorf("%w: relays: %w", ErrSettings, err)
	}
	if s.Relay && len(s.Relays) > 0 {
		return fmt.Errorf("%w: relay and relays: a node that others reach through relays cannot be one itself", ErrSettings)
	}
	if len(s.Announce) > 0 && len(s.Relays) > 0 {
		return fmt.Errorf("%w: announce and relays: a node that has an address to announce needs no relay", ErrSettings)
	}
	for _, text := range s.EtcdURLs {
		if u, err := url.Parse(text); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.Path != "" {
			return fmt.Errorf("%w: etcd-announce: %q; a URL like https://db1.example.org:2379", ErrSettings, text)
		}
	}
	if i := slices.IndexFunc(s.Follow, func(p string) bool { return p != "none" && !strings.HasPrefix(p, "/") }); i >= 0 {
		return fmt.Errorf("%w: follow: %q; prefixes of scopes begin with /, or none alone", ErrSettings, s.Follow[i])
	}
	if slices.Contains(s.Follow, "") || len(s.Follow) > 1 && slices.Contains(s.Follow, "none") {
		return fmt.Errorf("%w: follow: prefixes of scopes, like /registry/, or none alone", ErrSettings)
	}
	if s.PerIP < 0 {
		return fmt.Errorf("%w: conns-per-ip is %d; it is a number of connections, 0 for the default", ErrSettings, s.PerIP)
	}
	if s.WatchMemory < 0 || s.WatchMemory > maxWatchMemory {
		return fmt.Errorf("%w: watch-memory is %d; it is a number of MiB from 1 to %d, 0 for the default", ErrSettings, s.WatchMemory, maxWatchMemory)
	}
	if s.CopyMemory < -1 || s.CopyMemory > maxWatchMemory {
		return fmt.Errorf("%w: copy-memory is %d; it is a number of MiB from 1 to %d, 0 for the default, or -1 for no copies", ErrSettings, s.CopyMemory, maxWatchMemory)
	}
	if s.AnswerMemory < 0 || s.AnswerMemory > maxWatchMemory {
		return fmt.Errorf("%w: answer-memory is %d; it is a number of MiB from 1 to %d, 0 for the default", ErrSettings, s.AnswerMemory, maxWatchMemory)
	}
	if err := checkAPI(s); err != nil {
		return err
	}
	if err := checkRequests(s); err != nil {
		return err
	}
	if _, err := issuersOf(s); err != nil {
		return err
	}
	if _, err := autocompact.Parse(s.Compact[0], s.Compact[1]); err != nil {
		return fmt.Errorf("%w: %w", ErrSettings, err)
	}
	if s.EtcdMost != 0 && (s.EtcdMost < 1024 || s.EtcdMost > etcd.LargestRequest) {
		return fmt.Errorf("%w: max-request-bytes is %d; it is a number of bytes from 1024 to %d, or 0 for the default", ErrSettings, s.EtcdMost, etcd.LargestRequest)
	}
	if _, err := progressEvery(s); err != nil {
		return err
	}
	switch files := (certs.Files{Cert: s.EtcdCert, Key: s.EtcdKey, ClientCA: s.EtcdCA, Revoked: s.EtcdCRL}); {
	case s.Etcd == "" && (s.EtcdAuto || !files.IsZero()):
		return fmt.Errorf("%w: settings of TLS for clients of etcd, and no etcd-listen", ErrSettings)
	case s.Etcd == "" && (s.EtcdMost != 0 || s.EtcdTells != ""):
		return fmt.Errorf("%w: max-request-bytes or watch-progress-notify-interval, which are about clients of etcd, and no etcd-listen", ErrSettings)
	case files.Revoked != "" && files.ClientCA == "":
		return fmt.Errorf("%w: client-crl-file, and no etcd-trusted-ca-file with the issuers of the certificates that it revokes", ErrSettings)
	case s.EtcdAuto && !files.IsZero():
		return fmt.Errorf("%w: etcd-auto-tls makes a certificate; it does not go with etcd-cert-file, etcd-key-file and etcd-trusted-ca-file", ErrSettings)
	case !files.IsZero() && (files.Cert == "" || files.Key == ""):
		return fmt.Errorf("%w: etcd-cert-file and etcd-key-file go together, and etcd-trusted-ca-file takes both", ErrSettings)
	case s.Etcd != "":
		if err := checkEtcd(s); err != nil {
			return err
		}
	}
	if s.Metrics != "" {
		if err := api.CheckAddress(s.Metrics); err != nil {
			return fmt.Errorf("%w: metrics-listen: %w", ErrSettings, err)
		}
	}
	return nil
}

// leastProgress bounds how often each watch gets its progress.
const leastProgress = 100 * time.Millisecond

// progressEvery is the interval of watches' progress, 0 for the default.
func progressEvery(s home.Settings) (time.Duration, error) {
	if s.EtcdTells == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(s.EtcdTells)
	if err != nil || d < leastProgress {
		return 0, fmt.Errorf("%w: watch-progress-notify-interval is %q; it is a duration of at least %v such as 10m", ErrSettings, s.EtcdTells, leastProgress)
	}
	return d, nil
}

// pinOf is the roster that the settings trust, or none.
func pinOf(s home.Settings) (t scope.Trusted, err error) {
	if s.Trusted == "" {
		return t, nil
	}
	if t, err = scope.ParseTrusted(s.Trusted); err != nil {
		err = fmt.Errorf("%w: trusted: %w", ErrSettings, err)
	}
	return t, err
}

// CheckName reports whether people can be shown a name. Errors wrap ErrSettings.
func CheckName(setting, name string) error {
	if len(name) > maxName {
		return fmt.Errorf("%w: %s has %d bytes, at most %d are taken", ErrSettings, setting, len(name), maxName)
	}
	if !plain.Text(name) || strings.ContainsRune(name, utf8.RuneError) {
		return fmt.Errorf("%w: %s holds characters that do not print: %s", ErrSettings, setting, plain.Quote(name))
	}
	if err := plain.Name(name); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrSettings, setting, err)
	}
	return nil
}

// checkListen takes the addresses of the two transports, TCP and QUIC.
func checkListen(text string) error {
	a, err := ma.NewMultiaddr(text)
	if err != nil {
		return err
	}
	network, _, err := manet.DialArgs(a)
	if err != nil {
		return err
	}
	_, err = a.ValueForProtocol(ma.P_QUIC_V1)
	if isTCP := strings.HasPrefix(network, "tcp"); isTCP == (err == nil) || !isTCP && !strings.HasPrefix(network, "udp") {
		return errors.New("it is neither of the form /ip4/ADDRESS/tcp/PORT nor /ip4/ADDRESS/udp/PORT/quic-v1")
	}
	return nil
}

// maxWatchMemory bounds the settings of memory, in MiB.
const maxWatchMemory = 1 << 20
