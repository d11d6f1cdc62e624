package auth

import (
	"context"
	"encoding/base64"
	"net"
	"sync"

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

// Passwords are looked at one at a time: each takes a processor for some tenths of a second, and any client may ask.
// So that no address keeps the others out, few wait from one.
const (
	hashesWaiting = 64
	hashesEach    = 4
)

// Passwords is the queue of the passwords that are to be looked at.
type Passwords struct {
	turn    chan struct{} // holds a token while one is looked at
	mu      sync.Mutex
	waiting map[string]int // by address
	all     int
}

// NewPasswords returns an empty queue.
func NewPasswords() *Passwords { return &Passwords{turn: make(chan struct{}, 1)} }

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

// inTurn looks at a password when it is its turn.
func (p *Passwords) inTurn(ctx context.Context, address string, do func() error) error {
	from, _, _ := net.SplitHostPort(address)
	if net.ParseIP(from).IsLoopback() {
		from = address // these are of one machine, and behind one door
	}
	p.mu.Lock()
	if p.all >= hashesWaiting || p.waiting[from] >= hashesEach {
		p.mu.Unlock()
		return ErrTooManyRequests
	}
	if p.waiting == nil {
		p.waiting = make(map[string]int)
	}
	p.all++
	p.waiting[from]++
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.all--; p.waiting[from] > 1 {
			p.waiting[from]--
		} else {
			delete(p.waiting, from)
		}
	}()
	select {
	case p.turn <- struct{}{}:
		defer func() { <-p.turn }()
		return do()
	case <-ctx.Done():
		return status.FromContextError(ctx.Err()).Err()
	}
}

// decodeHash reads a password that a client hashed itself.
func decodeHash(text string) ([]byte, error) {
	hash, err := base64.StdEncoding.DecodeString(text)
	if cost, bad := bcrypt.Cost(hash); err != nil || bad != nil || cost > scope.MaxHashCost {
		return nil, errHashedPassword
	}
	return hash, nil
}
