package auth

import (
	"context"
	"encoding/base64"
	"net"
	"sync"

	"golang.org/x/crypto/bcrypt"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/aweigh/aweigh/scope"
)

var (
	ErrAuthFailed     = status.Error(codes.InvalidArgument, "etcdserver: authentication failed, invalid user ID or password")
	errBadPassword    = status.Error(codes.InvalidArgument, "aweigh: passwords have at most 72 bytes")
	errHashedPassword = status.Error(codes.InvalidArgument, "aweigh: hashedPassword is not what bcrypt makes at a cost of up to 12, in base64")
)

// Passwords are looked at one at a time: each takes a processor for a twentieth of a second, and any client may ask.
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

// Check returns an error unless a password is that of a user, who may be nil. address is that of the client.
func (p *Passwords) Check(ctx context.Context, address string, u *scope.User, password string) error {
	return p.inTurn(ctx, address, func() error {
		if u == nil || len(u.Password) == 0 || bcrypt.CompareHashAndPassword(u.Password, []byte(password)) != nil {
			return ErrAuthFailed
		}
		return nil
	})
}

// Hash returns what is kept of a password, or of a hash in base64 if the client made one itself.
func (p *Passwords) Hash(ctx context.Context, address, password, hash string) (out []byte, err error) {
	if hash != "" {
		return decodeHash(hash)
	}
	err = p.inTurn(ctx, address, func() error {
		if out, err = bcrypt.GenerateFromPassword([]byte(password), bcrypt.DefaultCost); err != nil {
			return errBadPassword
		}
		return nil
	})
	return out, err
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
