package votes

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"github.com/cloudflare/circl/sign"

	"github.com/aweigh/aweigh"
)

// Context separates the kinds of messages that one key signs, so that no
// signature can be taken for one on a message of another kind. What is signed
// under every scheme is the context, a zero byte, and the message; a context
// contains no zero byte.
type Context string

// The contexts in use.
const (
	ContextBallot Context = "aweigh/ballot/1"
	ContextBundle Context = "aweigh/bundle/1"
)

func (c Context) wrap(message []byte) []byte {
	b := make([]byte, 0, len(c)+1+len(message))
	return append(append(append(b, c...), 0), message...)
}

// Verifier says whether a signature is the key's own on a message in a context.
// A key of an unknown scheme or of the wrong length is ErrKey; a signature that
// does not verify is ErrForged. It keeps none of the slices.
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

// Memo remembers the answers of v, at least the newest entries of them and at
// most twice as many. It serves a simulator, in which every node verifies the
// same signatures in one process. The Verifier that it returns is not safe for
// concurrent use.
func Memo(v Verifier, entries int) Verifier {
	var older, newer map[aweigh.Hash]error
	return func(key PublicKey, ctx Context, message, signature []byte) error {
		id := memoKey(key, ctx, message, signature)
		if err, ok := newer[id]; ok {
			return err
		}
		err, ok := older[id]
		if !ok {
			err = v(key, ctx, message, signature)
		}
		if newer == nil || len(newer) >= entries {
			older, newer = newer, make(map[aweigh.Hash]error)
		}
		newer[id] = err
		return err
	}
}

// memoKey hashes all that an answer depends on, each part behind its length.
func memoKey(key PublicKey, ctx Context, message, signature []byte) (id aweigh.Hash) {
	b := make([]byte, 0, 512)
	b = binary.BigEndian.AppendUint64(b, uint64(len(key.Scheme)))
	b = append(b, key.Scheme...)
	b = binary.BigEndian.AppendUint64(b, uint64(len(key.Bytes)))
	b = append(b, key.Bytes...)
	b = binary.BigEndian.AppendUint64(b, uint64(len(ctx)))
	b = append(b, ctx...)
	b = binary.BigEndian.AppendUint64(b, uint64(len(message)))
	b = append(b, message...)
	return sha256.Sum256(append(b, signature...))
}
