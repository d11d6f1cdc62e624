package node

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/lineage"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
)

// The scope's anchors decide whether an island's change that was set aside replaces what is there. Members of the
// island open the motion in turn, each for a while: what one of them signs is valid until its turn ends. The next one
// looks for it in a state as of its own turn, after which no block can hold it. So one motion opens, if any member is
// there.

const (
	// asideTurn is how long the turn of a member is, counted from the time of the block that set the change aside.
	asideTurn = 10 * time.Second
	// asideWithin is how long members open a motion about it: for less time than the state keeps motions that closed.
	asideWithin = 24 * time.Hour
	// asideCaller begins the caller of such a motion.
	asideCaller = "island:"
)

var (
	errNoTurn = errors.New("node: another member's turn to open a motion about what was set aside")
	// errNoMotion is wrapped where no motion can open by now: too many are open, or an author's quota is used up.
	errNoMotion = errors.New("node: no motion opens about what was set aside")
)

// conflict is a change of an island that was set aside, and the keys of which it was the last change.
type conflict struct {
	scope.SetAside
	keys [][]byte
}

// voteOnAside sees to it that motions are open about what the scope set aside. A node that stops meanwhile goes on
// after its start.
func (n *Node) voteOnAside(ctx context.Context, is *island, rec *scope.IslandRecord) error {
	if rec.Aside == 0 {
		return nil
	}
	v, err := is.of.Read(ctx, true)
	if err != nil {
		return err
	}
	defer v.Close()
	all := make(map[int64]*conflict) // by the entry of the mutation that changed the keys last
	err = v.AsideOf(rec.ID, func(key []byte, a scope.SetAside) bool {
		if all[a.Entry] == nil {
			all[a.Entry] = &conflict{SetAside: a}
		}
		all[a.Entry].keys = append(all[a.Entry].keys, key)
		return true
	})
	if err != nil {
		return err
	}
	open, err := asideMotions(v)
	if err != nil {
		return err
	}
	for _, first := range slices.Sorted(maps.Keys(all)) {
		failure := n.voteOn(ctx, is, v, all[first], open)
		if err = errors.Join(err, failure); errors.Is(failure, errNoMotion) {
			break // what has no room for one has none for others
		}
	}
	return err
}

// asideMotions are the motions of anchors and their nodes about what was set aside that a state knows, by nonce and
// content.
func asideMotions(v *View) (map[aweigh.Hash]bool, error) {
	e, err := v.Epoch()
	if err != nil {
		return nil, err
	}
	found := make(map[aweigh.Hash]bool)
	var bad error
	err = v.Motions(func(id votes.MotionID, _ bool) bool {
		mo, _, err := v.Motion(id)
		if bad = err; bad != nil || mo == nil {
			return bad == nil
		}
		var m scope.Mutation
		if bad = canon.Decode(mo.Mutation, &m); bad == nil && strings.HasPrefix(m.Caller, asideCaller) && e.IsAnchor(m.Author) {
			found[asideKey(m.Nonce, m.Content)] = true
		}
		return bad == nil
	})
	return found, errors.Join(err, bad)
}

func asideKey(nonce, content []byte) aweigh.Hash { return aweigh.Sum(nonce, content) }

// voteOn opens a motion about what one mutation of the island made of some keys, in this member's turn, unless one was
// opened as of a view of the scope. It returns an error if it is to be tried again.
func (n *Node) voteOn(ctx context.Context, is *island, v *View, a *conflict, open map[aweigh.Hash]bool) error {
	p := is.of
	k := machine.KeyAside(p.id, is.replica.id, a.Mutation)
	if _, opened, err := n.cfg.Store.Get(k); opened || err != nil || !a.Open() {
		return err
	}
	mark := func() error { return n.cfg.Store.Commit([]kv.Op{kv.Set(k, []byte{1})}, true) }
	content, of, err := is.changed(ctx, a)
	if err != nil || content == nil {
		return err
	}
	nonce, now := asideNonce(is.replica.id, a.Mutation), p.time()
	if open[asideKey(nonce, content)] || now.Sub(a.Time) >= asideWithin {
		return mark()
	}
	turn := max(0, now.Sub(a.Time)) / asideTurn
	begins := a.Time.Add(turn * asideTurn)
	members := is.members()
	switch {
	case members[int(turn)%len(members)] != p.Status().Self:
		return errNoTurn
	case v.Head().Time < begins: // a block may still come that holds what another one signed
		return errors.Join(errNoTurn, p.cover(ctx, v.Height()))
	}
	once := Once{
		Nonce: nonce, ValidUntil: begins.Add(asideTurn - 1), Justification: of.Justification, Caller: asideFor(is.replica.id, of.Caller), Patient: true,
	}
	// What would fail is not proposed, as it would be on record each time.
	out, _, err := v.Foresee(p.mutation(scope.Write, content, once), now)
	if err != nil {
		return err
	}
	if out.Code == scope.Pending {
		r, err := p.propose(ctx, scope.Write, content, once)
		if err != nil {
			return err
		}
		if out.Code, out.Reason = r.Code, r.Reason; r.Code == scope.Pending {
			p.log.Info("a change of an island that was set aside is put to the vote", "motion", r.Mutation.Short(), "key", string(a.keys[0]))
			return mark()
		}
	}
	switch why := scope.Failure(out.Reason); {
	case p.time() >= begins.Add(asideTurn):
		return fmt.Errorf("%w: it was too late", errNoTurn)
	case errors.Is(why, scope.ErrDenied) || errors.Is(why, scope.ErrPatient): // by the policy, whenever it is tried
		p.log.Warn("a change of an island was set aside, and no motion opens about it", "island", is.replica.id.Short(), "key", string(a.keys[0]), "why", out.Reason)
		return nil
	default:
		return fmt.Errorf("%w: %s: %s", errNoMotion, out.Code, out.Reason)
	}
}

// asideFor is the caller of a motion about what an island did for a caller.
func asideFor(island aweigh.ScopeID, caller string) string {
	all := asideCaller + island.Short()
	if caller != "" {
		all += " " + caller
	}
	return strings.ToValidUTF8(all[:min(len(all), scope.MaxCaller)], "")
}

// changed is the content of a mutation that changes the keys of a conflict as the island did, and an entry of the
// island's mutation; nil if it changed them under other names.
func (is *island) changed(ctx context.Context, a *conflict) ([]byte, lineage.Entry, error) {
	v, err := is.replica.Read(ctx, false)
	if err != nil {
		return nil, lineage.Entry{}, err
	}
	ops, of, err := v.ChangedBy(a.Entry)
	if err = errors.Join(err, v.Close()); err != nil {
		return nil, of, err
	}
	ops = slices.DeleteFunc(ops, func(op scope.Op) bool {
		return !slices.ContainsFunc(a.keys, func(key []byte) bool { return bytes.Equal(key, op.Key) })
	})
	if len(ops) == 0 {
		return nil, of, nil
	}
	return canon.Encode(scope.Txn{Success: ops}), of, nil
}

// asideNonce is the nonce of the mutation that opens the motion about one mutation of an island.
func asideNonce(island aweigh.ScopeID, mutation aweigh.Hash) []byte {
	nonce := aweigh.Sum([]byte("aweigh/aside/1"), island[:], mutation[:])
	return bytes.Clone(nonce[:16])
}

// AsideMotions returns the motions on record about what the scope set aside of an island, by mutation of the island:
// those of its nonces, by nodes of the scope's anchors, of which any member may have opened one. A motion about a
// mutation that is missing has not opened yet, never will, or closed so long ago that the state has no record of it.
func AsideMotions(s *scope.State, rec *scope.IslandRecord) (map[aweigh.Hash]votes.MotionID, error) {
	e, err := s.Epoch()
	if err != nil {
		return nil, err
	}
	about := make(map[string]aweigh.Hash) // by nonce
	err = s.AsideOf(rec.ID, func(_ []byte, a scope.SetAside) bool {
		about[string(asideNonce(rec.ID, a.Mutation))] = a.Mutation
		return true
	})
	if err != nil {
		return nil, err
	}
	all := make(map[aweigh.Hash]votes.MotionID)
	var bad error
	err = s.Motions(func(id votes.MotionID, _ bool) bool {
		var mo *scope.Motion
		var m scope.CheckedMutation
		if mo, _, bad = s.Motion(id); bad == nil {
			m, bad = scope.OpenMutation(mo.Mutation)
		}
		if of, ok := about[string(m.Nonce)]; ok && (m.Author == rec.By || e.IsAnchor(m.Author)) {
			all[of] = id
		}
		return bad == nil && len(all) < len(about)
	})
	return all, errors.Join(err, bad)
}
