package node

import (
	"crypto/rand"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/p2p"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/store"
	"github.com/aweigh/aweigh/votes"
)

// TestAConfigurationIsRefusedByTheNameOfItsField changes one field of a configuration that New takes.
func TestAConfigurationIsRefusedByTheNameOfItsField(t *testing.T) {
	n, _ := stillNode(t, "n0", "n1")
	other, err := votes.GenerateKey(votes.MLDSA65, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	config := func() Config {
		return Config{Genesis: n.root.Genesis(), Identity: n.cfg.Identity, Anchor: n.cfg.Anchor, Store: store.NewMem(), Listen: n.cfg.Listen}
	}
	if err := config().Validate(); err != nil {
		t.Fatal(err)
	}
	peer := []string{"/ip4/192.0.2.1/tcp/4001/p2p/" + n.peerID}
	for _, c := range []struct {
		field string
		of    func(cfg *Config)
		wraps error
	}{
		{"Store", func(cfg *Config) { cfg.Store = nil }, nil},
		{"Genesis", func(cfg *Config) { cfg.Genesis = scope.Genesis{} }, scope.ErrInvalid},
		{"Genesis", func(cfg *Config) { cfg.Genesis.Anchors = nil }, scope.ErrInvalid},
		{"Trusted", func(cfg *Config) { cfg.Trusted.Epoch = 3 }, nil},
		{"Identity", func(cfg *Config) { cfg.Identity = votes.PrivateKey{} }, nil},
		{"Identity", func(cfg *Config) { cfg.Identity = other }, nil},
		{"Anchor", func(cfg *Config) { cfg.Anchor = new(votes.PrivateKey) }, nil},
		{"Anchor", func(cfg *Config) { cfg.Anchor = &cfg.Identity }, nil},
		{"Listen[1]", func(cfg *Config) { cfg.Listen = []string{"/ip4/127.0.0.1/tcp/0", "127.0.0.1:0"} }, nil},
		{"Announce[0]", func(cfg *Config) { cfg.Announce = []string{"example.org"} }, nil},
		{"Bootstrap", func(cfg *Config) { cfg.Bootstrap = []string{"/ip4/192.0.2.1/tcp/4001"} }, p2p.ErrConfig},
		{"Relays", func(cfg *Config) { cfg.Relays = []string{"nonsense"} }, p2p.ErrConfig},
		{"Relay", func(cfg *Config) { cfg.Relay, cfg.Relays = true, peer }, nil},
		{"Announce", func(cfg *Config) { cfg.Announce, cfg.Relays = n.cfg.Listen, peer }, nil},
		{"PerIP", func(cfg *Config) { cfg.PerIP = -1 }, nil},
		{"SnapshotPart", func(cfg *Config) { cfg.SnapshotPart = -1 }, nil},
		{"AnswerMemory", func(cfg *Config) { cfg.AnswerMemory = -1 }, nil},
		{"CopyAfter", func(cfg *Config) { cfg.CopyAfter = -1 }, nil},
		{"WatchMemory", func(cfg *Config) { cfg.WatchMemory = -1 }, nil},
		{"Timeout", func(cfg *Config) { cfg.Timeout = -time.Second }, nil},
		{"WatchSlow", func(cfg *Config) { cfg.WatchSlow = -1 }, nil},
		{"Timing.View", func(cfg *Config) { cfg.Timing.View = -1 }, nil},
		{"Timing.MaxView", func(cfg *Config) { cfg.Timing.MaxView = -1 }, nil},
		{"Timing.Offer", func(cfg *Config) { cfg.Timing.Offer = -1 }, nil},
		{"Timing.Settle", func(cfg *Config) { cfg.Timing.Settle = -1 }, nil},
	} {
		cfg := config()
		c.of(&cfg)
		got, err := New(cfg)
		if err == nil {
			t.Errorf("%s: New takes it", c.field)
			_ = got.host.Close()
			continue
		}
		text, ok := strings.CutPrefix(err.Error(), ErrConfig.Error()+": "+c.field)
		if !errors.Is(err, ErrConfig) || !ok || !strings.Contains(text, "; ") || c.wraps != nil && !errors.Is(err, c.wraps) {
			t.Errorf("%s: %v", c.field, err)
		}
		if cfg.Store == nil {
			continue
		}
		if _, stored, err := machine.StoredGenesis(cfg.Store); err != nil || stored {
			t.Errorf("%s: the store of a node that cannot run was written to, %v", c.field, err)
		}
	}
}
