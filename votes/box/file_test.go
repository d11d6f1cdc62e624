package box

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"testing"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/votes"
	"github.com/aweigh/aweigh/votes/reconcile"
)

func export(t testing.TB, s *ship, without reconcile.Set, size int) (files []File) {
	t.Helper()
	if err := s.box.Export(s.disk, without, size, func(f File) error { files = append(files, f); return nil }); err != nil {
		t.Fatal(err)
	}
	return files
}

func importAll(t testing.TB, s *ship, files []File) (sum Imported) {
	t.Helper()
	for _, f := range files {
		done, err := Import(ReadFile(f.Name, bytes.NewReader(f.Data), votes.BallotFileLimits{}), s.offer)
		if err != nil {
			t.Fatal(err)
		}
		sum.Added += done.Added
		sum.Repeated += done.Repeated
		sum.Equivocated += done.Equivocated
		sum.Refused += done.Refused
	}
	return sum
}

// TestFilesCarryTheDifference: two boxes without a connection get their union
// by files carried between them, in any order and any number of times.
func TestFilesCarryTheDifference(t *testing.T) {
	p := newPeople(t, 8)
	a, b := newShip(t, p, Limits{}), newShip(t, p, Limits{})
	for v := range p {
		for m := range 10 {
			ballot := p.ballot(t, v, m, votes.Approve)
			for i, s := range []*ship{a, b} {
				if (v+m)%4 != i {
					s.offer(ballot)
				}
			}
		}
	}
	a.offer(p.ballot(t, 0, 0, votes.Reject))
	lists := b.box.Set().Encode(b.box.topic())
	known, err := reconcile.DecodeSet(lists, a.box.topic(), 1000)
	if err != nil {
		t.Fatal(err)
	}
	files, again := export(t, a, known, 2000), export(t, a, known, 2000)
	lacks := 0
	a.box.Set().Minus(b.box.Set(), func(aweigh.Hash) bool { lacks++; return true })
	if len(files) < 3 || !slices.EqualFunc(files, again, func(x, y File) bool { return x.Name == y.Name && bytes.Equal(x.Data, y.Data) }) {
		t.Fatalf("%d files", len(files))
	}
	for _, f := range files {
		if len(f.Data) > 2000 {
			t.Errorf("%s has %d bytes", f.Name, len(f.Data))
		}
	}
	slices.Reverse(files)
	if got := importAll(t, b, files); got.Added+got.Equivocated != lacks || got.Equivocated != 1 || got.Repeated+got.Refused > 0 {
		t.Fatalf("%+v, %d were missing", got, lacks)
	}
	before := b.box.Set().Fingerprint()
	if got := importAll(t, b, append(files, files...)); got.Added+got.Equivocated+got.Refused > 0 || got.Repeated != 2*lacks {
		t.Errorf("again: %+v", got)
	}
	if b.box.Set().Fingerprint() != before {
		t.Error("a second import changes the box")
	}
	importAll(t, a, export(t, b, reconcile.Set{}, 1<<20))
	if a.box.Set().Fingerprint() != b.box.Set().Fingerprint() {
		t.Error("no union")
	}
	if files := export(t, a, b.box.Set(), 2000); len(files) > 0 {
		t.Errorf("%d files for boxes that are equal", len(files))
	}
}

func TestDamagedFilesShowIt(t *testing.T) {
	p := newPeople(t, 4)
	a := newShip(t, p, Limits{})
	for v := range p {
		a.offer(p.ballot(t, v, 1, votes.Approve))
	}
	f := export(t, a, reconcile.Set{}, 1<<20)[0]
	size := len(f.Data) / len(p)
	for _, c := range []struct {
		name, file string
		data       []byte
		added      int
		want       error
	}{
		{"whole", f.Name, f.Data, 4, nil},
		{"renamed", "votes" + FileSuffix, f.Data, 4, nil},
		{"a ballot less", f.Name, f.Data[:3*size], 3, ErrFileName},
		{"renamed, a ballot less", "votes" + FileSuffix, f.Data[:3*size], 3, nil},
		{"cut off", f.Name, f.Data[:3*size+5], 3, io.ErrUnexpectedEOF},
		{"empty", f.Name, nil, 0, ErrFileName},
	} {
		b := newShip(t, p, Limits{})
		done, err := Import(ReadFile(c.file, bytes.NewReader(c.data), votes.BallotFileLimits{}), b.offer)
		if done.Added != c.added || !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
			t.Errorf("%s: %+v, %v", c.name, done, err)
		}
	}
	bent := bytes.Clone(f.Data)
	bent[2*size-1] ^= 1 // of the second ballot's signature
	b := newShip(t, p, Limits{})
	done, err := Import(ReadFile("bent", bytes.NewReader(bent), votes.BallotFileLimits{}), b.offer)
	if err != nil || done.Added != 3 || done.Refused != 1 || done.Reasons[0].Ballot != 1 || !errors.Is(done.Reasons[0].Err, votes.ErrForged) {
		t.Errorf("one forged: %+v, %v", done, err)
	}
	disk := errors.New("disk full")
	done, err = Import(ReadFile(f.Name, bytes.NewReader(f.Data), votes.BallotFileLimits{}), func(votes.MotionBallot) (Outcome, error) { return 0, disk })
	if err != disk || done.Added+done.Refused > 0 {
		t.Errorf("a failing disk: %+v, %v", done, err)
	}
	if err := a.box.Export(a.disk, reconcile.Set{}, 1, func(File) error { return disk }); err != disk {
		t.Errorf("a full stick: %v", err)
	}
}
