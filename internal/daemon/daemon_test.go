package daemon

import (
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/founding"
	"github.com/aweigh/aweigh/internal/home"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/store/diskstore"
)

func founded(t *testing.T) (home.Dir, home.Settings) {
	t.Helper()
	dir := home.Dir(t.TempDir())
	s := home.Settings{Name: "one", Listen: []string{"/ip4/127.0.0.1/tcp/0"}, API: "127.0.0.1:0", Insecure: true}
	self, err := founding.Self(dir, s)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := (founding.Plan{Dir: dir, Settings: s, Self: self, Network: "n", Mode: quorum.BFT, Now: aweigh.Instant(1)}).Found(); err != nil {
		t.Fatal(err)
	}
	return dir, s
}

// aRelay is a relay's address.
const aRelay = "/ip4/192.0.2.1/tcp/1/p2p/12D3KooWEyoppNCUx8Yx66oV9fJnriXwCcXwDDUA2kj6vnc6iDEp"

func TestWhatCannotBeOpenedIsAnErrorAndLeavesNothingOpen(t *testing.T) {
	t.Parallel()
	dir, good := founded(t)
	log := slog.New(slog.DiscardHandler)
	if _, err := Open(home.Dir(t.TempDir()), good, "", log); err == nil || !strings.Contains(err.Error(), "aweigh init") {
		t.Errorf("no node: %v", err)
	}
	for name, spoil := range map[string]func(*home.Settings){
		"no address":     func(s *home.Settings) { s.Listen = nil },
		"listen":         func(s *home.Settings) { s.Listen = []string{"nonsense"} },
		"udp alone":      func(s *home.Settings) { s.Listen = []string{"/ip4/127.0.0.1/udp/0"} },
		"announce":       func(s *home.Settings) { s.Announce = []string{"nonsense"} },
		"bootstrap":      func(s *home.Settings) { s.Bootstrap = []string{"/ip4/127.0.0.1/tcp/1"} },
		"relays":         func(s *home.Settings) { s.Relays = []string{"/ip4/127.0.0.1/tcp/1"} },
		"hidden relay":   func(s *home.Settings) { s.Relay, s.Relays = true, []string{aRelay} },
		"both ways":      func(s *home.Settings) { s.Announce, s.Relays = []string{"/ip4/192.0.2.1/tcp/1"}, []string{aRelay} },
		"conns per ip":   func(s *home.Settings) { s.PerIP = -1 },
		"answer memory":  func(s *home.Settings) { s.AnswerMemory = -1 },
		"copy memory":    func(s *home.Settings) { s.CopyMemory = -2 },
		"watch memory":   func(s *home.Settings) { s.WatchMemory = -1 },
		"api":            func(s *home.Settings) { s.API = "nonsense" },
		"open api":       func(s *home.Settings) { s.Insecure = false },
		"etcd":           func(s *home.Settings) { s.Etcd = "2379" },
		"open etcd":      func(s *home.Settings) { s.API, s.Etcd, s.Insecure = "", "127.0.0.1:0", false },
		"metrics":        func(s *home.Settings) { s.Metrics = "9177" },
		"long name":      func(s *home.Settings) { s.Name = strings.Repeat("x", maxName+1) },
		"name of colour": func(s *home.Settings) { s.Name = "\x1b[31m" },
	} {
		s := good
		spoil(&s)
		if d, err := Open(dir, s, "", log); !errors.Is(err, ErrSettings) || d != nil {
			t.Errorf("%s: %v, %v", name, d, err)
		}
	}
	first, err := Open(dir, good, "", log)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir, good, "", log); !errors.Is(err, diskstore.ErrLocked) {
		t.Errorf("in use: %v", err)
	}
	other, s := founded(t)
	s.API = first.API()
	if _, err := Open(other, s, "", log); err == nil {
		t.Error("two nodes on one port")
	}
	s.API, s.Metrics = "127.0.0.1:0", first.API()
	if _, err := Open(other, s, "", log); err == nil {
		t.Error("metrics on a port that is taken")
	}
	s.Metrics, s.Etcd = "", first.API()
	if _, err := Open(other, s, "", log); err == nil {
		t.Error("etcd's API on a port that is taken")
	}
	s.Etcd = ""
	s.Metrics = "0.0.0.0:0" // counts may be seen from elsewhere
	if err := Check(s); err != nil {
		t.Error(err)
	}
	s.Metrics = ""
	s.API, s.Listen = "127.0.0.1:0", []string{"/ip4/127.0.0.1/tcp/" + first.API()[strings.LastIndex(first.API(), ":")+1:]}
	if _, err := Open(other, s, "", log); err == nil || !strings.Contains(err.Error(), s.Listen[0]) {
		t.Errorf("two listeners on one port: %v", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := Open(dir, good, "", log)
	if err != nil {
		t.Fatalf("after all that: %v", err)
	}
	if err := again.Close(); err != nil {
		t.Error(err)
	}
}
