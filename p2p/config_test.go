package p2p

import (
	"errors"
	"testing"

	"github.com/aweigh/aweigh"
)

func TestBadConfigIsRefused(t *testing.T) {
	t.Parallel()
	good := Config{Key: newKey(t), Network: testNetwork}
	for name, change := range map[string]func(*Config){
		"no key":           func(c *Config) { c.Key = nil },
		"no network":       func(c *Config) { c.Network = aweigh.NetworkID{} },
		"negative limit":   func(c *Config) { c.QueueBytes = -1 },
		"no room for data": func(c *Config) { c.MaxGossip = 10 },
		"bad announcement": func(c *Config) { c.Announce = []string{"192.0.2.1:4001"} },
	} {
		c := good
		change(&c)
		if h, err := New(c); !errors.Is(err, ErrConfig) {
			t.Errorf("%s: %v", name, err)
			if h != nil {
				h.Close()
			}
		}
	}
}

func TestAddressesRoundTrip(t *testing.T) {
	t.Parallel()
	h := start(t, func(c *Config) { c.Announce = []string{"/dns4/node.example/tcp/4001", "/ip4/192.0.2.7/tcp/4001"} })
	addrs := h.Addrs()
	infos, err := ParsePeers(addrs)
	if err != nil || len(infos) != 1 || infos[0].ID != h.ID() || len(infos[0].Addrs) != 2 {
		t.Errorf("%v is read as %v: %v", addrs, infos, err)
	}
	for _, bad := range []string{"", "localhost", "/ip4/192.0.2.7/tcp/4001"} {
		if _, err := ParsePeers([]string{bad}); !errors.Is(err, ErrConfig) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestClosedHostRefuses(t *testing.T) {
	t.Parallel()
	h := start(t, nil)
	for range 2 {
		if err := h.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if h.Send(h.ID(), nil) {
		t.Error("Send worked")
	}
	if _, err := h.Request(t.Context(), h.ID(), nil, 1); !errors.Is(err, ErrClosed) {
		t.Errorf("Request: %v", err)
	}
	if err := h.Publish("t", nil); !errors.Is(err, ErrClosed) {
		t.Errorf("Publish: %v", err)
	}
}
