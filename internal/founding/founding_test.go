package founding

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/aweigh/aweigh/internal/home"
	"github.com/aweigh/aweigh/quorum"
)

func self(t *testing.T, s home.Settings) (home.Dir, Anchor) {
	t.Helper()
	d := home.Dir(t.TempDir())
	a, err := Self(d, s)
	if err != nil {
		t.Fatal(err)
	}
	return d, a
}

func list(t *testing.T, lines ...string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "anchors.yaml")
	if err := os.WriteFile(name, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func line(t *testing.T, a Anchor) string {
	t.Helper()
	s, err := a.Line()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestFoundersAgreeOnOneGenesis(t *testing.T) {
	settings := home.Settings{Name: "a b: c", Listen: []string{"/ip4/0.0.0.0/tcp/1", "/ip4/192.0.2.1/tcp/1"}}
	dirA, a := self(t, settings)
	dirB, b := self(t, home.Settings{Listen: []string{"/ip4/192.0.2.2/tcp/2"}})
	if len(a.Addresses) != 1 {
		t.Errorf("an address that nobody can dial: %v", a.Addresses)
	}
	file := list(t, line(t, a), line(t, b))
	if got, err := ReadAnchors(file); err != nil || !reflect.DeepEqual(got, []Anchor{a, b}) {
		t.Fatalf("got %+v, %v", got, err)
	}
	g, err := Plan{Dir: dirA, Settings: settings, Self: a, Network: "n", Mode: quorum.Crash, Anchors: file, Now: 1}.Found()
	if err != nil {
		t.Fatal(err)
	}
	h, err := Plan{Dir: dirB, Self: b, Anchors: file, Genesis: dirA.Genesis()}.Found()
	if err != nil || h.Hash() != g.Hash() {
		t.Errorf("another genesis: %v", err)
	}
	s, err := dirB.ReadSettings()
	if err != nil || len(s.Bootstrap) != 1 || s.Bootstrap[0] != "/ip4/192.0.2.1/tcp/1/p2p/"+string(a.Peer) {
		t.Errorf("settings %+v, %v", s, err)
	}
	dirC, c := self(t, settings)
	if _, err := (Plan{Dir: dirC, Self: c, Mode: quorum.BFT, Anchors: file, Now: 1}).Found(); !errors.Is(err, ErrAnchors) {
		t.Errorf("a node that is not listed founds: %v", err)
	}
}

func TestBadListsAreRefused(t *testing.T) {
	_, a := self(t, home.Settings{Name: "a"})
	good := line(t, a)
	for name, text := range map[string]string{
		"empty": "", "no list": "a: b", "no YAML": "- {", "text": "- x", "no key": `- {name: "a"}`,
		"unknown field": strings.Replace(good, "name:", "nme:", 1),
		"bad key":       strings.Replace(good, "ed25519:", "ed25519:!", 1),
		"bad peer":      strings.Replace(good, "12D3", "22D3", 1),
		"no addresses":  strings.Replace(good, "[]", "1", 1),
	} {
		if _, err := ReadAnchors(list(t, text)); !errors.Is(err, ErrAnchors) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := (Anchor{Name: "a\"b"}).Line(); err == nil {
		t.Error("a name that breaks the line was taken")
	}
}
