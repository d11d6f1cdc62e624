package auth

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/node"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
)

// Node is the part of a node that a guard needs; *node.Node is one.
type Node interface {
	Root() *node.Replica
	Access(ctx context.Context, linearizable bool) (scope.Access, error)
	Changed() <-chan struct{}
	Clock() time.Time
	Lease(ctx context.Context, id int64, keys bool) (scope.Granted, [][]byte, bool, scope.Head, error)
	Scopes() []node.ScopeInfo
}

// Guard knows the users and roles of the newest revision that was asked for, and finds the rights of a caller. All
// ports of a node share one.
type Guard struct {
	node     Node
	identity votes.PrivateKey
	self     aweigh.Hash // the identity's
	tokens   tokens

	mu      sync.Mutex
	access  *scope.Access
	rights  map[string]*Rights
	current atomic.Pointer[time.Time] // when this node knew for sure what was decided; nil: never

	asking sync.Mutex // held while this node asks for the newest users and roles
	asked  time.Time  // when it last did, by its own clock
	newest int64      // revision that it was answered
}

// NewGuard returns the guard of a node with an identity, which signs tokens.
func NewGuard(n Node, identity votes.PrivateKey) *Guard {
	return &Guard{node: n, identity: identity, self: identity.Public().ID()}
}

// Revision returns the revision of the users and roles as this node knows them, 0 if there were never any.
func (g *Guard) Revision() int64 { return g.node.Root().LastHead().Access }

// known returns the users and roles as this node knows them, nil if users are not enabled.
func (g *Guard) known(ctx context.Context) (*scope.Access, error) {
	revision := g.Revision()
	if revision == 0 {
		return nil, nil
	}
	g.mu.Lock()
	a := g.access
	g.mu.Unlock()
	if a == nil || a.Revision < revision {
		got, err := g.node.Access(ctx, false)
		if err != nil {
			return nil, err
		}
		a = &got
		g.mu.Lock()
		if g.access == nil || g.access.Revision < a.Revision {
			g.access, g.rights = a, make(map[string]*Rights)
		}
		g.mu.Unlock()
	}
	if !a.Enabled {
		return nil, nil
	}
	return a, nil
}

// currentFor bounds the age of the users and roles that a node knows when it allows a write or a linearizable read.
const currentFor = 5 * time.Second

// awaitCurrent makes sure that this node knows the users and roles that were decided some seconds ago: a node that
// begins, or was cut off, may know of none. If there were never any, it does so once.
func (g *Guard) awaitCurrent(ctx context.Context) error {
	at := g.current.Load()
	if at != nil && (g.Revision() == 0 || time.Since(*at) < currentFor) {
		return nil
	}
	if _, err := g.node.Access(ctx, true); err != nil {
		return err
	}
	now := time.Now() // by the monotonic clock
	g.current.Store(&now)
	return nil
}

// awaitNewer reports whether users and roles were decided that are newer than a revision. It asks the quorum; if that
// does not answer in time, there are none. One question serves all calls that wait for it.
func (g *Guard) awaitNewer(ctx context.Context, revision int64) bool {
	came := time.Now()
	ctx, cancel := context.WithTimeout(ctx, lagsFor)
	defer cancel()
	g.asking.Lock()
	defer g.asking.Unlock()
	if !g.asked.After(came) && ctx.Err() == nil {
		at := time.Now()
		a, err := g.node.Access(ctx, true)
		if err != nil {
			return false
		}
		g.asked, g.newest = at, a.Revision
	}
	if g.newest <= revision {
		return false
	}
	_, err := g.awaitAccess(ctx, g.newest)
	return err == nil
}

// Still returns an error if users and roles have changed since a revision, by whose something was read.
func (g *Guard) Still(revision int64) error {
	if g.Revision() != revision {
		return errOldRevision
	}
	return nil
}

// lagsFor is how long a node waits for users and roles that another one knows.
const lagsFor = 2 * time.Second

// awaitAccess waits until this node knows the users and roles of a revision.
func (g *Guard) awaitAccess(ctx context.Context, revision int64) (*scope.Access, error) {
	if err := g.Await(ctx, revision); err != nil {
		return nil, err
	}
	return g.known(ctx)
}

// Await waits until this node holds calls to the users and roles of a revision, for a time that is bounded.
func (g *Guard) Await(ctx context.Context, revision int64) error {
	ctx, cancel := context.WithTimeout(ctx, lagsFor)
	defer cancel()
	for {
		changed := g.node.Changed()
		if g.Revision() >= revision {
			return nil
		}
		select {
		case <-changed:
		case <-time.After(10 * time.Millisecond): // the status may come a moment after the block
		case <-ctx.Done():
			return errTimeout
		}
	}
}
