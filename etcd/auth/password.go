package auth

import (
	"context"
	"encoding/base64"

	"golang.org/x/crypto/bcrypt"
	"golang.org/x/crypto/scrypt"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
)

var (
	ErrAuthFailed     = status.Error(codes.InvalidArgument, "etcdserver: authentication failed, invalid user ID or password")
	errBadPassword    = status.Error(codes.InvalidArgument, "aweigh: passwords have at most 72 bytes")
	errHashedPassword = status.Error(codes.InvalidArgument, "aweigh: hashedPassword is not what bcrypt makes at a cost of up to 12, in base64")
)

// Kept is what users and roles hold of a password.
type Kept struct {
	Hash []byte // of bcrypt
	Key  []byte // public key of keyOf; nil if the client gave the hash alone
}

// Check returns an error unless a password is that of a user, which may be nil. Otherwise it returns the key that signs
// the user's tokens, the zero key if the user has none. address is that of the client.
func (p *Passwords) Check(
	ctx context.Context, address string, u *scope.User, password string,
) (key votes.PrivateKey, err error) {
	err = p.inTurn(ctx, address, func() error {
		if u == nil || len(u.Password) == 0 || bcrypt.CompareHashAndPassword(u.Password, []byte(password)) != nil {
			return ErrAuthFailed
		}
		if len(u.Key) > 0 {
			key, err = keyOf(password, u.Password)
		}
		return err
	})
	return key, err
}

// Hash returns what is kept of a password, or of a hash in base64 if the client made one itself.
func (p *Passwords) Hash(ctx context.Context, address, password, hash string) (out Kept, err error) {
	if hash != "" {
		out.Hash, err = decodeHash(hash)
		return out, err
	}
	err = p.inTurn(ctx, address, func() error {
		if out.Hash, err = bcrypt.GenerateFromPassword([]byte(password), bcrypt.DefaultCost); err != nil {
			return errBadPassword
		}
		key, err := keyOf(password, out.Hash)
		if err != nil {
			return err
		}
		out.Key = key.Public().Bytes
		return nil
	})
	return out, err
}

// keyOf derives a key from a password. The hash of bcrypt is the salt: it has one of its own. The public key lets all
// nodes of the network guess passwords, as the hash does, so deriving it takes about as long.
func keyOf(password string, hash []byte) (votes.PrivateKey, error) {
	seed, err := scrypt.Key([]byte(password), hash, 1<<15, 8, 1, 32)
	if err != nil {
		return votes.PrivateKey{}, err
	}
	return votes.KeyFromSeed(votes.Ed25519, seed)
}

// decodeHash reads a password that a client hashed itself.
func decodeHash(text string) ([]byte, error) {
	hash, err := base64.StdEncoding.DecodeString(text)
	if cost, bad := bcrypt.Cost(hash); err != nil || bad != nil || cost > scope.MaxHashCost {
		return nil, errHashedPassword
	}
	return hash, nil
}
