// Package keyfile keeps a private key in a file that only a passphrase opens,
// for voters that sign on machines of their own: a voter's key on a laptop, or
// on the stick that also carries the ballots.
//
// The file is one of age (age-encryption.org/v1), armored, whose content is the
// key's text. So the program age opens it too: age -d voter.key. Its only
// recipient is a passphrase through scrypt; ChaCha20-Poly1305 protects the
// content.
package keyfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"filippo.io/age"
	"filippo.io/age/armor"

	"github.com/aweigh/aweigh/votes"
)

// Work is the base-2 logarithm of how often scrypt repeats: the cost of a
// guess. Each step doubles time and memory.
const (
	DefaultWork = 18 // about a second and 256 MiB
	maxWork     = 20 // what Decrypt accepts, so that a file cannot demand all memory
)

// maxFile bounds a key file, in bytes: they have less than a tenth of it.
const maxFile = 16 << 10

var (
	// ErrPassphrase: the passphrase is wrong, or empty. Try another.
	ErrPassphrase = errors.New("keyfile: wrong passphrase")
	// ErrFile: it is no key file, or it is damaged. Errors of package age are not
	// passed on: they quote lines of the file.
	ErrFile = errors.New("keyfile: not an encrypted key file, or damaged; take the copy that was kept elsewhere")
)

// IsEncrypted reports whether data looks like a key file that asks for a
// passphrase, and not like the plain text of a key.
func IsEncrypted(data []byte) bool {
	return bytes.HasPrefix(bytes.TrimSpace(data), []byte(armor.Header))
}

// Encrypt makes the file of a key. The work is DefaultWork unless tests ask for
// less. An empty passphrase is ErrPassphrase.
func Encrypt(key votes.PrivateKey, passphrase string, work int) ([]byte, error) {
	if passphrase == "" {
		return nil, fmt.Errorf("%w: it is empty", ErrPassphrase)
	}
	to, err := age.NewScryptRecipient(passphrase)
	if err != nil {
		return nil, fmt.Errorf("keyfile: %w", err)
	}
	if work < 1 || work > maxWork {
		return nil, fmt.Errorf("keyfile: work of %d, from 1 to %d is taken", work, maxWork)
	}
	to.SetWorkFactor(work)
	var file bytes.Buffer
	lines := armor.NewWriter(&file)
	w, err := age.Encrypt(lines, to)
	if err != nil {
		return nil, fmt.Errorf("keyfile: %w", err)
	}
	if _, err := io.WriteString(w, key.Encode()+"\n"); err != nil {
		return nil, fmt.Errorf("keyfile: %w", err)
	}
	if err := errors.Join(w.Close(), lines.Close()); err != nil {
		return nil, fmt.Errorf("keyfile: %w", err)
	}
	return file.Bytes(), nil
}

// Decrypt opens a file that Encrypt made. The error wraps ErrPassphrase or
// ErrFile, and shows neither the passphrase nor anything of the file.
func Decrypt(file []byte, passphrase string) (votes.PrivateKey, error) {
	if len(file) > maxFile {
		return votes.PrivateKey{}, fmt.Errorf("%w: it has %d bytes, at most %d are taken", ErrFile, len(file), maxFile)
	}
	if passphrase == "" {
		return votes.PrivateKey{}, fmt.Errorf("%w: it is empty", ErrPassphrase)
	}
	by, err := age.NewScryptIdentity(passphrase)
	if err != nil {
		return votes.PrivateKey{}, fmt.Errorf("keyfile: %w", err)
	}
	by.SetMaxWorkFactor(maxWork)
	r, err := age.Decrypt(armor.NewReader(bytes.NewReader(file)), by)
	if errors.Is(err, age.ErrIncorrectIdentity) {
		return votes.PrivateKey{}, ErrPassphrase
	}
	if err != nil {
		return votes.PrivateKey{}, ErrFile
	}
	text, err := io.ReadAll(io.LimitReader(r, maxFile))
	if err != nil {
		return votes.PrivateKey{}, ErrFile
	}
	key, err := votes.ParsePrivateKey(string(text))
	if err != nil {
		return votes.PrivateKey{}, fmt.Errorf("%w: %w", ErrFile, err)
	}
	return key, nil
}
