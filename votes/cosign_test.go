package votes_test

import (
	"bytes"
	"crypto/rand"
	"errors"
	"strings"
	"testing"
	"time"

	tlog "github.com/transparency-dev/formats/log"
	tnote "github.com/transparency-dev/formats/note"
	"golang.org/x/mod/sumdb/note"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/lineage"
	"github.com/aweigh/aweigh/votes"
)

// TestOthersReadCosignatures: an independent implementation of signed notes, of
// checkpoints and of cosignatures reads the signatures of anchors, and refuses others.
func TestOthersReadCosignatures(t *testing.T) {
	c := lineage.Checkpoint{Origin: "aweigh/log", Head: lineage.Head{Size: 1234567, Root: aweigh.Sum([]byte("root"))}, More: []string{"block 9 abc"}}
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var by []votes.Cosignature
	var known []note.Verifier
	for range 3 {
		key, err := votes.GenerateKey(votes.Ed25519, rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		s, err := votes.Cosign(key, c.Text(), at.Unix())
		if err != nil {
			t.Fatal(err)
		}
		v, err := tnote.NewVerifierForCosignatureV1(votes.VerifierKey(key.Public()))
		if err != nil {
			t.Fatal(err)
		}
		if v.Name() != s.Name() {
			t.Errorf("%s is called %s", s.Name(), v.Name())
		}
		by, known = append(by, s), append(known, v)
	}
	signed := votes.Note(c.Text(), by)
	n, err := note.Open(signed, note.VerifierList(known...))
	if err != nil || len(n.Sigs) != 3 || len(n.UnverifiedSigs) != 0 || n.Text != c.Text() {
		t.Fatalf("%+v, %v\n%s", n, err, signed)
	}
	for i := range n.Sigs {
		if when, err := tnote.CoSigV1Timestamp(n.Sigs[i]); err != nil || !when.Equal(at) {
			t.Errorf("signed at %s, %v", when, err)
		}
	}
	var read tlog.Checkpoint
	if rest, err := read.Unmarshal([]byte(n.Text)); err != nil || read.Origin != c.Origin || read.Size != 1234567 || !bytes.Equal(read.Hash, c.Head.Root[:]) || string(rest) != "block 9 abc\n" {
		t.Errorf("%+v, %q, %v", read, rest, err)
	}
	again, err := lineage.ParseCheckpoint(n.Text)
	if err != nil || again.Text() != c.Text() {
		t.Errorf("%+v, %v", again, err)
	}
	if _, err := note.Open(bytes.Replace(signed, []byte("1234567"), []byte("1234568"), 1), note.VerifierList(known...)); err == nil {
		t.Error("a note of another size is taken")
	}
	if _, err := note.Open(signed, note.VerifierList()); err == nil {
		t.Error("a note of keys that are not in the roster is taken")
	}
	for i := range by {
		if err := by[i].Check(c.Text()); err != nil {
			t.Error(err)
		}
		for _, bad := range []votes.Cosignature{
			{Key: by[i].Key, Time: by[i].Time + 1, Signature: by[i].Signature},
			{Key: by[i].Key, Time: -1, Signature: by[i].Signature},
			{Key: by[(i+1)%3].Key, Time: by[i].Time, Signature: by[i].Signature},
			{Key: by[i].Key, Time: by[i].Time, Signature: by[i].Signature[:63]},
			{Key: by[i].Key, Time: by[i].Time},
		} {
			if err := bad.Check(c.Text()); !errors.Is(err, votes.ErrForged) && !errors.Is(err, votes.ErrKey) {
				t.Errorf("%+v: %v", bad, err)
			}
		}
		if err := by[i].Check(c.Text() + "more\n"); !errors.Is(err, votes.ErrForged) {
			t.Errorf("of another text: %v", err)
		}
	}
	keys := []votes.PublicKey{by[2].Key, by[0].Key}
	if some := votes.CosignedBy(signed, keys...); len(some) != 2 || some[0].Key.ID() != by[2].Key.ID() || some[0].Time != at.Unix() {
		t.Errorf("two of three keys signed it: %+v", some)
	}
	for _, bad := range [][]byte{
		nil, []byte("\n\n"), []byte(c.Text()), bytes.Replace(signed, []byte("1234567"), []byte("1234568"), 1),
		bytes.ReplaceAll(signed, []byte("— aweigh"), []byte("- aweigh")), bytes.ReplaceAll(signed, []byte(" "), nil),
	} {
		if some := votes.CosignedBy(bad, keys...); len(some) > 0 {
			t.Errorf("%q is signed by %d", bad, len(some))
		}
	}
	other, err := votes.GenerateKey(votes.Ed448, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := votes.Cosign(other, c.Text(), 1); !errors.Is(err, votes.ErrKey) {
		t.Errorf("by a key of another scheme: %v", err)
	}
}

func TestTextThatIsNoCheckpointIsRefused(t *testing.T) {
	good := lineage.Checkpoint{Origin: "o", Head: lineage.Head{Size: 3}}.Text()
	if _, err := lineage.ParseCheckpoint(good); err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(good, "\n")
	for _, bad := range []string{
		"", "\n", "o\n", lines[0] + lines[1], good[:len(good)-1], good + "\n", "\n" + good, lines[0] + "03\n" + lines[2],
		lines[0] + "-1\n" + lines[2], lines[0] + "99999999999999999999\n" + lines[2], lines[0] + lines[1] + "AAAA\n", lines[0] + lines[1] + "*\n",
		good + "\nx\n",
	} {
		if _, err := lineage.ParseCheckpoint(bad); !errors.Is(err, lineage.ErrCheckpoint) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
