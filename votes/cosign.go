package votes

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"strings"
	"time"
)

// Cosignature is an anchor's statement that a log has a head, with the time of the statement. It has the form of
// C2SP's tlog-cosignature, which witnesses of other logs use and existing tools check.
type Cosignature struct {
	Key       PublicKey
	Time      int64  // in seconds since 1970
	Signature []byte // 64 bytes
}

// Cosign signs the text of a checkpoint, as of a time in seconds since 1970. The error
// wraps ErrKey if the key is not of the one scheme that cosignatures have, Ed25519.
func Cosign(key PrivateKey, text string, at int64) (c Cosignature, err error) {
	c = Cosignature{Key: key.Public(), Time: at}
	if err := c.check(); err != nil {
		return c, err
	}
	c.Signature = key.Sign(ContextCosignature, c.message(text))
	return c, nil
}

// Check verifies the cosignature of a checkpoint's text. Errors wrap ErrKey or ErrForged.
func (c *Cosignature) Check(text string) error {
	if err := c.check(); err != nil {
		return err
	}
	return Verify(c.Key, ContextCosignature, c.message(text), c.Signature)
}

func (c *Cosignature) check() error {
	if c.Key.Scheme != Ed25519 {
		return fmt.Errorf("%w: cosignatures are by keys of the scheme %s", ErrKey, Ed25519)
	}
	if c.Time < 0 {
		return fmt.Errorf("%w: a cosignature from before 1970", ErrForged)
	}
	return nil
}

// message returns the bytes that are signed after the context.
func (c *Cosignature) message(text string) []byte {
	return fmt.Appendf(nil, "time %d\n%s", c.Time, text)
}

// cosigned is the type of such signatures, and of their keys.
const cosigned = 0x04

// Name returns the name of the key on a note.
func (c *Cosignature) Name() string { return cosignerName(c.Key) }

func cosignerName(k PublicKey) string {
	id := k.ID()
	return "aweigh/" + id.String()
}

// keyHash returns the hash by which notes identify a key besides its name.
func keyHash(k PublicKey) [4]byte {
	h := sha256.Sum256(append([]byte(cosignerName(k)+"\n"), typed(k)...))
	return [4]byte(h[:4])
}

func typed(k PublicKey) []byte { return append([]byte{cosigned}, k.Bytes...) }

// Line returns the cosignature as a line of a note, with its line end.
func (c *Cosignature) Line() string {
	h := keyHash(c.Key)
	raw := binary.BigEndian.AppendUint64(h[:], uint64(c.Time))
	return "— " + c.Name() + " " + base64.StdEncoding.EncodeToString(append(raw, c.Signature...)) + "\n"
}

// VerifierKey returns a key in the form that tools for signed notes accept.
func VerifierKey(k PublicKey) string {
	h := keyHash(k)
	return fmt.Sprintf("%s+%x+%s", cosignerName(k), h, base64.StdEncoding.EncodeToString(typed(k)))
}

// Note returns a signed note: a checkpoint's text with cosignatures.
func Note(text string, by []Cosignature) []byte {
	var b bytes.Buffer
	b.WriteString(text)
	b.WriteByte('\n')
	for i := range by {
		b.WriteString(by[i].Line())
	}
	return b.Bytes()
}

// CosignedBy returns the cosignatures of the given keys on a signed note of a checkpoint.
func CosignedBy(note []byte, keys ...PublicKey) (by []Cosignature) {
	text, lines, ok := strings.Cut(string(note), "\n\n")
	if !ok {
		return nil
	}
	for _, k := range keys {
		c := Cosignature{Key: k}
		hash := keyHash(k)
		for line := range strings.Lines(lines) {
			rest, named := strings.CutPrefix(line, "— "+c.Name()+" ")
			raw, err := base64.StdEncoding.DecodeString(strings.TrimSuffix(rest, "\n"))
			if !named || err != nil || len(raw) < 12 || [4]byte(raw) != hash {
				continue
			}
			c.Time, c.Signature = int64(binary.BigEndian.Uint64(raw[4:])), raw[12:]
			if c.Check(text+"\n") == nil {
				by = append(by, c)
				break
			}
		}
	}
	return by
}

// When returns the time of the cosignature.
func (c *Cosignature) When() time.Time { return time.Unix(c.Time, 0).UTC() }
