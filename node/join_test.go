package node

import (
	"errors"
	"strings"
	"testing"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/scope"
)

var someInvite = Invite{
	Network: aweigh.Sum([]byte("network")), Name: "test",
	Peers: []string{"/ip4/127.0.0.1/tcp/4177/p2p/12D3KooWLcZjWf3QtwvZtPjwL8gyRh9tfXMMwiWJqM1BMprCEoW5"},
}

func TestInvitesSurviveTheirText(t *testing.T) {
	text := someInvite.String()
	for _, form := range []string{text, strings.ToUpper(text), " " + text + "\n"} {
		got, err := ParseInvite(form)
		if err != nil || got.Network != someInvite.Network || got.Name != someInvite.Name || got.Peers[0] != someInvite.Peers[0] {
			t.Errorf("%q: got %+v, %v", form, got, err)
		}
	}
}

// TestInvitesCarryARosterAndASecret: and one that carries half of a secret, or a bad roster, is refused.
func TestInvitesCarryARosterAndASecret(t *testing.T) {
	i := someInvite
	want := scope.Trusted{Epoch: 7, Roster: aweigh.Sum([]byte("roster"))}
	i.Recent, i.Ticket, i.Secret = want.String(), "vaasa", make([]byte, secretBytes)
	if got, err := ParseInvite(i.String()); err != nil || got.trusted() != want || got.Network != i.Network || got.Ticket != "vaasa" || len(got.Secret) != secretBytes {
		t.Errorf("%+v, %v", got, err)
	}
	for _, bad := range []string{"7", "x:" + want.Roster.String(), "07:" + want.Roster.String()} {
		other := i
		other.Recent = bad
		if _, err := ParseInvite(other.String()); !errors.Is(err, ErrInvite) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	for _, spoil := range []func(*Invite){
		func(i *Invite) { i.Ticket = "" }, func(i *Invite) { i.Secret = nil }, func(i *Invite) { i.Secret = i.Secret[1:] },
	} {
		other := i
		spoil(&other)
		if _, err := ParseInvite(other.String()); !errors.Is(err, ErrInvite) {
			t.Errorf("%+v: %v", other, err)
		}
	}
}

func TestInvitesWithAnyCharacterChangedAreRefused(t *testing.T) {
	text := someInvite.String()
	for i := range text {
		for _, c := range []string{"a", "7", "", "aa"} {
			changed := text[:i] + c + text[i+1:]
			if _, err := ParseInvite(changed); changed != text && !errors.Is(err, ErrInvite) {
				t.Fatalf("character %d as %q: %v", i, c, err)
			}
		}
	}
	if _, err := ParseInvite(Invite{Network: someInvite.Network}.String()); !errors.Is(err, ErrInvite) {
		t.Errorf("nobody to ask: %v", err)
	}
}

func FuzzParseInvite(f *testing.F) {
	f.Add(someInvite.String())
	f.Add("aweigh1")
	f.Fuzz(func(t *testing.T, text string) {
		i, err := ParseInvite(text)
		if err != nil {
			if !errors.Is(err, ErrInvite) {
				t.Fatal(err)
			}
			return
		}
		if i.String() != strings.ToLower(strings.TrimSpace(text)) {
			t.Fatalf("%q is also %q", text, i)
		}
	})
}

func TestAuthorsAreFoundByTheirPeerID(t *testing.T) {
	if machine.AuthorOf("nonsense") != (aweigh.Hash{}) {
		t.Error("an author for nonsense")
	}
	if machine.AuthorOf("12D3KooWLcZjWf3QtwvZtPjwL8gyRh9tfXMMwiWJqM1BMprCEoW5").IsZero() {
		t.Error("no author for an Ed25519 peer ID")
	}
}
