package votes

import "fmt"

// Signer makes signatures with one key. A PrivateKey makes one with Signer; an
// agent, a program, a card or a person with a disk may be another.
type Signer interface {
	// Public is the key that the signatures verify with.
	Public() PublicKey
	// SignMessage signs exactly message, nothing before or after it.
	SignMessage(message []byte) (signature []byte, err error)
}

// Signer is the key as a Signer. Its SignMessage is for motion ballots.
func (k PrivateKey) Signer() Signer { return keySigner{k} }

type keySigner struct{ key PrivateKey }

func (s keySigner) Public() PublicKey { return s.key.Public() }

func (s keySigner) SignMessage(message []byte) ([]byte, error) {
	return s.key.Sign(ContextCOSE, message), nil
}

// SignWith is PrivateKey.Sign with a signer. A signature that the signer did
// not make with a PrivateKey is verified before it is returned. The error wraps
// that of the signer, ErrKey, or ErrForged if the signer signed something else
// or with another key.
func SignWith(s Signer, ctx Context, message []byte) ([]byte, error) {
	if k, own := s.(keySigner); own {
		return k.key.Sign(ctx, message), nil
	}
	signature, err := s.SignMessage(ctx.wrap(message))
	if err != nil {
		return nil, err
	}
	if err := Verify(s.Public(), ctx, message, signature); err != nil {
		return nil, fmt.Errorf("votes: the signer's signature: %w", err)
	}
	return signature, nil
}
