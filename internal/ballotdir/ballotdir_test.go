package ballotdir

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/store"
	"github.com/aweigh/aweigh/votes"
	"github.com/aweigh/aweigh/votes/box"
	"github.com/aweigh/aweigh/votes/reconcile"
)

var network, scope = aweigh.Sum([]byte("network")), aweigh.Sum([]byte("scope"))

// site is a place with a box, and no line to the others.
type site struct {
	t    *testing.T
	box  *box.Box
	disk *store.Mem
	who  voter
}

type voter struct{ key votes.PrivateKey }

func (v voter) Key(id aweigh.Hash) (votes.PublicKey, bool) {
	return v.key.Public(), id == v.key.Public().ID()
}

func (v voter) Motion(votes.MotionID) box.Motion { return box.Motion{Voters: v} }

func newSite(t *testing.T, who voter) *site {
	s := &site{t: t, disk: store.NewMem(), who: who}
	b, ops, err := box.New(network, scope, box.Limits{}, s.disk, who)
	if err != nil || len(ops) > 0 {
		t.Fatal(err)
	}
	s.box = b
	return s
}

func (s *site) offer(v votes.MotionBallot) (box.Outcome, error) {
	out, ops, err := s.box.Offer(v, s.who.Motion(v.Motion), nil)
	if len(ops) > 0 {
		if err := s.disk.Commit(ops, true); err != nil {
			return 0, err
		}
	}
	return out, err
}

// imported gives a site the ballots of one file of a directory.
func imported(t *testing.T, dir, name string, to *site) (box.Imported, error) {
	t.Helper()
	f, err := os.Open(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	return box.Import(box.ReadFile(name, f, votes.BallotFileLimits{}), to.offer)
}

var _ kv.Reader = (*store.Mem)(nil)

// TestBallotsTravelOnAStick: written twice and read twice, with other things
// and a torn file beside them.
func TestBallotsTravelOnAStick(t *testing.T) {
	key, err := votes.KeyFromSeed(votes.Ed25519, bytes.Repeat([]byte{7}, 32))
	if err != nil {
		t.Fatal(err)
	}
	ashore, aboard := newSite(t, voter{key}), newSite(t, voter{key})
	for i := range 20 {
		v, err := votes.SignMotionBallot(key.Signer(), votes.MotionVote{Network: network, Scope: scope, Motion: aweigh.Sum([]byte{byte(i)}), Choice: votes.Approve}, "")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := aboard.offer(v); err != nil {
			t.Fatal(err)
		}
	}
	stick := filepath.Join(t.TempDir(), "stick", "ballots")
	for range 2 {
		if err := aboard.box.Export(aboard.disk, reconcile.Set{}, 2000, func(f box.File) error { return Write(stick, f) }); err != nil {
			t.Fatal(err)
		}
	}
	for _, other := range []string{"notes.txt", ".hidden.ballot"} {
		if err := os.WriteFile(filepath.Join(stick, other), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	names, err := Files(stick)
	if entries, _ := os.ReadDir(stick); err != nil || len(names) < 3 || len(entries) != len(names)+2 {
		t.Fatalf("%v, %v", names, err)
	}
	added, repeated := 0, 0
	for range 2 {
		for _, name := range names {
			done, err := imported(t, stick, name, ashore)
			if err != nil {
				t.Fatal(err)
			}
			added, repeated = added+done.Added, repeated+done.Repeated
		}
	}
	if added != 20 || repeated != 20 || ashore.box.Set().Fingerprint() != aboard.box.Set().Fingerprint() {
		t.Errorf("%d added, %d repeated", added, repeated)
	}
	torn := filepath.Join(stick, names[0])
	if err := os.Truncate(torn, 500); err != nil {
		t.Fatal(err)
	}
	if _, err := imported(t, stick, names[0], newSite(t, voter{key})); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a torn file: %v", err)
	}
	if err := aboard.box.Export(aboard.disk, reconcile.Set{}, 2000, func(f box.File) error { return Write(stick, f) }); err != nil {
		t.Fatal(err)
	}
	if done, err := imported(t, stick, names[0], ashore); err != nil || done.Repeated == 0 {
		t.Errorf("a torn file is not written again: %+v, %v", done, err)
	}
	if err := Write(torn, box.File{Name: "x", Data: []byte{1}}); err == nil {
		t.Error("a file was taken for a directory")
	}
	if _, err := Files(filepath.Join(stick, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no directory: %v", err)
	}
}
