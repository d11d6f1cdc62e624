package node

import (
	"errors"
	"fmt"
	"time"

	ma "github.com/multiformats/go-multiaddr"

	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/p2p"
)

// ErrConfig is wrapped by the errors of Config.Validate.
var ErrConfig = errors.New("node: invalid configuration")

// Validate reports the first field with which no node can run, and what to do about it. New calls it. Errors wrap
// ErrConfig, and the error of the package that refuses the value, if there is one. Zero values of optional fields are
// valid.
func (cfg Config) Validate() error {
	for _, check := range []func() error{cfg.checkNetwork, cfg.checkKeys, cfg.checkAddresses, cfg.checkNumbers} {
		if err := check(); err != nil {
			return fmt.Errorf("%w: %w", ErrConfig, err)
		}
	}
	return nil
}

// checkNetwork checks the network, and where its data is.
func (cfg *Config) checkNetwork() error {
	if cfg.Store == nil {
		return wrong("Store", "is nil; open one with diskstore.Open, or store.NewMem for a test")
	}
	if _, err := cfg.Genesis.Check(); err != nil {
		return wrong("Genesis", "is not that of a network: %w; take the genesis that founded the network, which an invite or another node gives", err)
	}
	if d := cfg.Genesis.Descent; d != nil {
		return wrong("Genesis", "is that of the scope of %q; take that of the network's root scope, and name the prefix in Follow", d.Prefix)
	}
	if t := cfg.Trusted; t.Roster.IsZero() && t.Epoch != 0 {
		return wrong("Trusted", "names epoch %d without a roster; set its Roster too, or leave both out", t.Epoch)
	}
	return nil
}

func (cfg *Config) checkKeys() error {
	if cfg.Identity.IsZero() {
		return wrong("Identity", "is not a key; make one with votes.GenerateKey of the scheme votes.Ed25519, and keep it")
	}
	own, err := machine.PeerOf(cfg.Identity)
	if err != nil {
		return wrong("Identity", "does not fit: %w; make one with votes.GenerateKey of the scheme votes.Ed25519, and keep it", err)
	}
	if cfg.Anchor == nil {
		return nil
	}
	if cfg.Anchor.IsZero() {
		return wrong("Anchor", "is not a key; leave it nil for an observer")
	}
	if p, err := machine.PeerOf(*cfg.Anchor); err == nil && p == own {
		return wrong("Anchor", "is the key of Identity; make another for the anchor with votes.GenerateKey")
	}
	return nil
}

func (cfg *Config) checkAddresses() error {
	for _, list := range []struct {
		field string
		addrs []string
	}{{"Listen", cfg.Listen}, {"Announce", cfg.Announce}} {
		for i, s := range list.addrs {
			if _, err := ma.NewMultiaddr(s); err != nil {
				return wrong(fmt.Sprintf("%s[%d]", list.field, i), "is %q: %w; write a multiaddr like /ip4/192.0.2.1/tcp/4001", s, err)
			}
		}
	}
	for _, list := range []struct {
		field string
		addrs []string
	}{{"Bootstrap", cfg.Bootstrap}, {"Relays", cfg.Relays}} {
		if _, err := p2p.ParsePeers(list.addrs); err != nil {
			return wrong(list.field, "does not name peers: %w; write multiaddrs like /ip4/192.0.2.1/tcp/4001/p2p/12D3…", err)
		}
	}
	switch {
	case cfg.Relay && len(cfg.Relays) > 0:
		return wrong("Relay", "and Relays are both set; a node that others reach through relays cannot be one itself: leave one out")
	case len(cfg.Announce) > 0 && len(cfg.Relays) > 0:
		return wrong("Announce", "and Relays are both set; a node that has an address to announce needs no relay: leave one out")
	}
	return nil
}

func (cfg *Config) checkNumbers() error {
	for _, n := range []struct {
		field string
		value int64
	}{{"PerIP", int64(cfg.PerIP)}, {"SnapshotPart", int64(cfg.SnapshotPart)}, {"WatchMemory", cfg.WatchMemory}, {"AnswerMemory", cfg.AnswerMemory}, {"CopyAfter", int64(cfg.CopyAfter)}} {
		if n.value < 0 {
			return wrong(n.field, "is %d; set a number above 0, or 0 for the default", n.value)
		}
	}
	for _, d := range []struct {
		field string
		value time.Duration
	}{
		{"Timeout", cfg.Timeout}, {"WatchSlow", cfg.WatchSlow}, {"Timing.View", cfg.Timing.View},
		{"Timing.MaxView", cfg.Timing.MaxView}, {"Timing.Offer", cfg.Timing.Offer}, {"Timing.Settle", cfg.Timing.Settle},
	} {
		if d.value < 0 {
			return wrong(d.field, "is %v; set a duration above 0, or 0 for the default", d.value)
		}
	}
	return nil
}

// wrong returns the error about a field: its name, and what is wrong with it and what to do.
func wrong(field, format string, args ...any) error {
	return fmt.Errorf(field+" "+format, args...)
}
