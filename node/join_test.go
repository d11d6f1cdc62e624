package node

import (
	"errors"
	"strings"
	"testing"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
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

// TestInvitesCarryARoster: and those of before, which carry none, are read and written as they were.
func TestInvitesCarryARoster(t *testing.T) {
	const before = "aweigh1"
	old := someInvite.String()
	if got, err := ParseInvite(old); err != nil || got.Recent != "" || !got.Trusted().Roster.IsZero() || !strings.HasPrefix(old, before) {
		t.Errorf("%+v, %v", got, err)
	}
	raw := canon.Encode(oldInvite{Network: someInvite.Network, Name: someInvite.Name, Peers: someInvite.Peers})
	if sum := aweigh.Sum([]byte("aweigh/invite/1"), raw); old != before+inviteText.EncodeToString(append(raw, sum[:4]...)) {
		t.Error("an invite without a roster has another form than before")
	}
	i := someInvite
	want := scope.Trusted{Epoch: 7, Roster: aweigh.Sum([]byte("roster"))}
	i.Recent = want.String()
	if got, err := ParseInvite(i.String()); err != nil || got.Trusted() != want || got.Network != i.Network {
		t.Errorf("%+v, %v", got, err)
	}
	for _, bad := range []string{"7", "x:" + want.Roster.String(), "07:" + want.Roster.String()} {
		i.Recent = bad
		if _, err := ParseInvite(i.String()); !errors.Is(err, ErrInvite) {
			t.Errorf("%q: %v", bad, err)
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
