package home

import (
	"fmt"
	"os"
	"strings"

	"github.com/knadh/koanf/v2"

	"github.com/aweigh/aweigh/internal/config"
)

// Settings are the content of a node's configuration file.
type Settings struct {
	Name         string    // for people
	Listen       []string  // multiaddrs
	Announce     []string  // multiaddrs
	Bootstrap    []string  // multiaddrs ending in /p2p/ and a peer ID
	Relay        bool      // carry connections to nodes that cannot be dialled
	Relays       []string  // multiaddrs of such relays, through which this node is reached
	Follow       []string  // prefixes of the scopes to hold; ["none"]: none but its own; empty: all
	Prune        bool      // drop blocks whose changes were compacted
	Trusted      string    // a roster of the root scope that is known to be recent, EPOCH:HASH; empty: the genesis is enough
	FirstCome    bool      // no scope gives way to others
	PerIP        int       // connections that one IP address may hold; 0 is the default
	WatchMemory  int       // MiB that the watches of clients may hold; 0 is the default
	AnswerMemory int       // MiB that answers to ranges may hold; 0 is the default
	CopyMemory   int       // MiB that copies of foreign keys may take; 0 is the default, -1: no copies
	API          string    // host:port; empty: the node's socket alone
	APICert      string    // file of the certificate that the API shows at api-listen; empty: no TLS
	APIKey       string    // file of its key
	APICA        string    // file of the issuers of clients' certificates
	APICRL       string    // file of revoked certificates of clients; empty: none
	APIAdmins    []string  // common names of the certificates whose holders may use the anchor's key
	OIDC         string    // file of the issuers of callers' tokens; empty: none
	Insecure     bool      // the ports for clients may take clients without certificates
	Etcd         string    // host:port for etcd's API; empty for none
	EtcdURLs     []string  // at which clients of etcd reach it, for other nodes to tell
	EtcdCert     string    // file of the certificate that etcd's API shows; empty: no TLS
	EtcdKey      string    // file of its key
	EtcdCA       string    // file of the issuers of clients' certificates; empty: clients need none
	EtcdAuto     bool      // show a certificate that the node makes itself
	EtcdCRL      string    // file of revoked certificates of clients; empty: none
	EtcdMost     int       // bytes of a request of clients of etcd; 0 is the default
	EtcdTells    string    // how often a watch that asked for it gets its progress, a duration; empty is the default
	Compact      [2]string // mode and retention of compactions by themselves, as in etcd; empty: none
	Metrics      string    // host:port for metrics and health alone; empty for none
	AuditFile    string    // where requests are recorded; empty: nowhere
	AuditLevels  []string  // PREFIX=LEVEL: which requests for the keys below are
	LogLevel     string    // debug, info, warn, error
	LogFormat    string    // text, json
}

// SaveSettings writes the configuration file, over one that is there.
func (d Dir) SaveSettings(s Settings) error {
	if err := os.MkdirAll(string(d), 0o700); err != nil {
		return fmt.Errorf("home: %w", err)
	}
	// A crash leaves the old file or the new one.
	fresh := d.Config() + ".new"
	if err := os.WriteFile(fresh, []byte(s.yaml()), 0o600); err != nil {
		return fmt.Errorf("home: %w", err)
	}
	if err := os.Rename(fresh, d.Config()); err != nil {
		return fmt.Errorf("home: %w", err)
	}
	return nil
}

// yaml writes every setting with its meaning; empty ones as comments.
func (s Settings) yaml() string {
	var b strings.Builder
	b.WriteString("# Settings of one Aweigh node. Every key is also a flag of \"aweigh node\" and,\n" +
		"# as AWEIGH_ with capitals and underscores, an environment variable.\n")
	one := func(comment, key, value string) {
		if comment != "" {
			fmt.Fprintf(&b, "\n# %s\n", comment)
		}
		if value == "" {
			fmt.Fprintf(&b, "#%s:\n", key)
			return
		}
		fmt.Fprintf(&b, "%s: %q\n", key, value)
	}
	list := func(comment, key string, values []string) {
		fmt.Fprintf(&b, "\n# %s\n", comment)
		if len(values) == 0 {
			fmt.Fprintf(&b, "#%s: []\n", key)
			return
		}
		fmt.Fprintf(&b, "%s:\n", key)
		for _, v := range values {
			fmt.Fprintf(&b, "  - %q\n", v)
		}
	}
	flag := func(comment, key string, value bool) {
		off := "#"
		if value {
			off = ""
		}
		fmt.Fprintf(&b, "\n# %s\n%s%s: true\n", comment, off, key)
	}
	one("The node's name.", "name", s.Name)
	list("Multiaddrs on which other nodes reach this one.", "listen", s.Listen)
	list("Multiaddrs that other nodes get instead, behind NAT.", "announce", s.Announce)
	list("Nodes to ask first, ending in /p2p/ and their peer ID.", "bootstrap", s.Bootstrap)
	flag("Carry connections to nodes of this network that cannot be dialled.", "relay", s.Relay)
	list("Nodes with \"relay\" through which others reach this one, ending in /p2p/ and a peer ID.", "relays", s.Relays)
	one("A roster of the network that is known to be recent, EPOCH:HASH: another history is refused, and nothing is served before.", "trusted", s.Trusted)
	list("Prefixes of the scopes that this node holds, beside those that it anchors; \"none\": no others.", "follow", s.Follow)
	flag("Drop blocks all of whose changes were compacted.", "prune", s.Prune)
	flag("Take clients' changes first come, first served: scopes that are written to far more than others do not give way to them.", "first-come", s.FirstCome)
	if s.PerIP != 0 {
		fmt.Fprintf(&b, "\n# Connections that one IP address may hold.\nconns-per-ip: %d\n", s.PerIP)
	}
	if s.WatchMemory != 0 {
		fmt.Fprintf(&b, "\n# MiB of changes that all watches of clients may hold together.\nwatch-memory: %d\n", s.WatchMemory)
	}
	if s.CopyMemory != 0 {
		fmt.Fprintf(&b, "\n# MiB that copies of keys of scopes that this node does not hold may take; -1: no copies.\ncopy-memory: %d\n", s.CopyMemory)
	}
	if s.AnswerMemory != 0 {
		fmt.Fprintf(&b, "\n# MiB that the answers to ranges may hold together while they are read and sent.\nanswer-memory: %d\n", s.AnswerMemory)
	}
	one("Where clients on other machines reach this node, host:port; on this one, it always listens at run/api.sock.", "api-listen", s.API)
	one("Files (PEM) of the certificate and key that clients there are shown, and of the issuers of the certificates that they must show. Changes are noticed.", "api-cert", s.APICert)
	one("", "api-key", s.APIKey)
	one("", "api-client-ca", s.APICA)
	one("File (PEM) of the lists of certificates that those issuers revoked.", "api-client-crl", s.APICRL)
	list("Callers that may govern and vote with this anchor's key: common names of certificates, or identities such as oidc:ISSUER#SUBJECT.", "api-admins", s.APIAdmins)
	one("File (YAML) of the issuers of OpenID Connect whose tokens callers may show.", "oidc-issuers", s.OIDC)
	one("Where clients of etcd reach this node, host:port.", "etcd-listen", s.Etcd)
	list("URLs at which clients of etcd reach this node, which other nodes report, if it listens on every address.", "etcd-announce", s.EtcdURLs)
	one("Files (PEM) of the certificate and key that clients of etcd are shown: TLS. Changes are noticed.", "etcd-cert-file", s.EtcdCert)
	one("", "etcd-key-file", s.EtcdKey)
	one("File (PEM) of the issuers of the certificates that clients of etcd must show.", "etcd-trusted-ca-file", s.EtcdCA)
	flag("Show clients of etcd a certificate that the node makes itself.", "etcd-auto-tls", s.EtcdAuto)
	one("File (PEM) of the lists of certificates that those issuers revoked.", "client-crl-file", s.EtcdCRL)
	if s.EtcdMost != 0 {
		fmt.Fprintf(&b, "\n# The largest request of a client of etcd, in bytes.\nmax-request-bytes: %d\n", s.EtcdMost)
	}
	one("How often a watch of etcd's gets progress, if it asked for that, while nothing happens.", "watch-progress-notify-interval", s.EtcdTells)
	one("Compact the history by itself: periodic or revision, and how much of it is kept, like 24h or 10000.", "auto-compaction-mode", s.Compact[0])
	one("", "auto-compaction-retention", s.Compact[1])
	flag("Let api-listen and etcd-listen take clients without certificates: every client that reaches them can read and write.", "insecure", s.Insecure)
	one("Where metrics and health are served besides, to every client that reaches it, host:port.", "metrics-listen", s.Metrics)
	one("File in which refused requests are recorded, and reads by the levels below.", "audit-file", s.AuditFile)
	list("What is recorded for keys that begin so, PREFIX=LEVEL: none, metadata (refusals) or request (also reads).",
		"audit-level", s.AuditLevels)
	one("debug, info, warn or error.", "log-level", s.LogLevel)
	one("text or json.", "log-format", s.LogFormat)
	return b.String()
}

// SettingsOf takes the settings from where the flags, the environment and the
// file were brought together.
func SettingsOf(k *koanf.Koanf) Settings {
	return Settings{
		Name: k.String("name"), Listen: k.Strings("listen"), Announce: k.Strings("announce"),
		Bootstrap: k.Strings("bootstrap"), Relay: k.Bool("relay"), Relays: k.Strings("relays"), Follow: k.Strings("follow"), Prune: k.Bool("prune"), Trusted: k.String("trusted"), FirstCome: k.Bool("first-come"), PerIP: k.Int("conns-per-ip"), WatchMemory: k.Int("watch-memory"), AnswerMemory: k.Int("answer-memory"), CopyMemory: k.Int("copy-memory"),
		API: k.String("api-listen"), Insecure: k.Bool("insecure"), Metrics: k.String("metrics-listen"),
		APICert: k.String("api-cert"), APIKey: k.String("api-key"), APICA: k.String("api-client-ca"),
		APICRL: k.String("api-client-crl"), APIAdmins: k.Strings("api-admins"), OIDC: k.String("oidc-issuers"),
		Etcd: k.String("etcd-listen"), EtcdURLs: k.Strings("etcd-announce"), EtcdCert: k.String("etcd-cert-file"), EtcdKey: k.String("etcd-key-file"),
		EtcdCA: k.String("etcd-trusted-ca-file"), EtcdAuto: k.Bool("etcd-auto-tls"),
		EtcdCRL: k.String("client-crl-file"), EtcdMost: k.Int("max-request-bytes"), EtcdTells: k.String("watch-progress-notify-interval"),
		Compact:   [2]string{k.String("auto-compaction-mode"), k.String("auto-compaction-retention")},
		AuditFile: k.String("audit-file"), AuditLevels: k.Strings("audit-level"),
		LogLevel: k.String("log-level"), LogFormat: k.String("log-format"),
	}
}

// ReadSettings reads the configuration file alone.
func (d Dir) ReadSettings() (Settings, error) {
	k, err := config.ReadFile(d.Config())
	if err != nil {
		return Settings{}, err
	}
	return SettingsOf(k), nil
}
