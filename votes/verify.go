package votes

import (
	"fmt"

	"github.com/cloudflare/circl/sign"
)

// Context separates the kinds of messages that one key signs, so that no
// signature can be taken for one on a message of another kind. Under every
// scheme, the signed bytes are the context, a zero byte, and the message; a
// context contains no zero byte. ContextCOSE and ContextCosignature differ.
type Context string

// The contexts in use.
const (
	ContextBallot Context = "aweigh/ballot/1"
	ContextBundle Context = "aweigh/bundle/1"
	// ContextConsent: a new anchor agrees to be admitted.
	ContextConsent Context = "aweigh/consent/1"

	// ContextGrant: an author lets another key act with a part of its rights.
	ContextGrant Context = "aweigh/grant/1"

	// ContextKnock: the holder of an invite's secret asks to be admitted.
	ContextKnock Context = "aweigh/knock/1"

	// ContextBackup: a node made a backup.
	ContextBackup Context = "aweigh/backup/1"

	// ContextToken: a node states the identity of its client.
	ContextToken Context = "aweigh/token/1"

	// ContextCOSE is for the Sig_structures of RFC 9052, as SigningBytes of a
	// MotionBallot, which other tools can check. They begin with the byte 0x84,
	// with which no context begins, and with a context of their own.
	ContextCOSE Context = ""
	// ContextCosignature is for heads of logs. It ends with a line end instead of a
	// zero byte, as C2SP's tlog-cosignature has it.
	ContextCosignature Context = "cosignature/v1"
)

func (c Context) wrap(message []byte) []byte {
	if c == ContextCOSE {
		return message
	}
	end := byte(0)
	if c == ContextCosignature {
		end = '\n'
	}
	b := make([]byte, 0, len(c)+1+len(message))
	return append(append(append(b, c...), end), message...)
}

// Verifier checks that a signature is the key's own on a message in a
// context. A key of an unknown scheme or of the wrong length is ErrKey; a
// signature that does not verify is ErrForged. It keeps none of the slices.
type Verifier func(key PublicKey, ctx Context, message, signature []byte) error

// Verify is the Verifier that does the work.
func Verify(key PublicKey, ctx Context, message, signature []byte) error {
	p, err := key.parse()
	if err != nil {
		return err
	}
	return verify(p, ctx.wrap(message), signature)
}

func verify(key sign.PublicKey, wrapped, signature []byte) error {
	if !key.Scheme().Verify(key, wrapped, signature, nil) {
		return fmt.Errorf("%w of %d bytes", ErrForged, len(signature))
	}
	return nil
}
