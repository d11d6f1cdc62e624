package witness

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/mod/sumdb/note"

	"github.com/aweigh/aweigh/votes"
)

// witness verifies signatures of notes by one key: it is a note.Verifier.
type witness struct {
	label string // in the policy
	url   string // to which checkpoints are posted, or empty
	name  string // of the key
	hash  uint32
	key   votes.PublicKey
}

// cosigned is the type of Ed25519 keys that sign cosignatures (https://c2sp.org/tlog-cosignature).
const cosigned = 0x04

// parseKey reads a verifier key of a witness: name, hash and key, with a plus between them
// (https://c2sp.org/signed-note).
func parseKey(vkey string) (w witness, err error) {
	name, rest, _ := strings.Cut(vkey, "+")
	hash, text, _ := strings.Cut(rest, "+")
	raw, err := base64.StdEncoding.Strict().DecodeString(text)
	switch {
	case err != nil || len(raw) == 0 || name == "" || !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsSpace):
		return w, errors.New("the key is not a verifier key, NAME+HASH+KEY")
	case raw[0] != cosigned:
		return w, fmt.Errorf("the key is of the type %d, and of witnesses' keys only type %d, Ed25519, is read", raw[0], cosigned)
	}
	sum := sha256.Sum256(append([]byte(name+"\n"), raw...))
	if fmt.Sprintf("%x", sum[:4]) != hash {
		return w, errors.New("the hash in the key is not that of the key: it was altered, or is cut off")
	}
	w = witness{name: name, hash: binary.BigEndian.Uint32(sum[:]), key: votes.PublicKey{Scheme: votes.Ed25519, Bytes: raw[1:]}}
	return w, w.key.Check()
}

// Name returns the name of the key.
func (w *witness) Name() string { return w.name }

// KeyHash returns the hash by which notes identify the key besides its name.
func (w *witness) KeyHash() uint32 { return w.hash }

// Verify reports whether sig is a cosignature of the text by the key.
func (w *witness) Verify(text, sig []byte) bool {
	if len(sig) < 8 {
		return false
	}
	c := votes.Cosignature{Key: w.key, Time: int64(binary.BigEndian.Uint64(sig)), Signature: sig[8:]}
	return c.Check(string(text)) == nil
}

// line returns the first line by which the witness signed a checkpoint's text, in its one form. Other lines do not
// count.
func (w *witness) line(text, lines string) (string, error) {
	err := errors.New("no line of its key")
	for l := range strings.Lines(lines) {
		if !strings.HasPrefix(l, "— "+w.name+" ") {
			continue
		}
		n, bad := note.Open([]byte(text+"\n"+l), note.VerifierList(w))
		if bad != nil {
			err = bad
			continue
		}
		raw, bad := base64.StdEncoding.DecodeString(n.Sigs[0].Base64) // which may have another form
		if bad != nil {
			err = bad
			continue
		}
		return "— " + w.name + " " + base64.StdEncoding.EncodeToString(raw) + "\n", nil
	}
	return "", err
}
