package fsck

import (
	"bytes"
	"encoding/binary"
	"errors"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/trust"
	"github.com/aweigh/aweigh/votes"
	"github.com/aweigh/aweigh/votes/box"
)

// peerSpace is where libp2p keeps addresses of peers. They are hints: a peer proves who
// it is when it is reached.
const peerSpace = 'p'

// checkOthers checks all records that neither a chain nor a state has, and that there are no
// others.
func (a *auditor) checkOthers() error {
	type space struct {
		letter byte
		idSize int
		check  func(x *audited, k, v []byte) error
	}
	spaces := map[byte]space{
		'n': {'n', len(aweigh.ScopeID{}), a.own},
		'g': {'g', len(aweigh.ScopeID{}), a.signed},
		'b': {'b', len(aweigh.ScopeID{}), a.boxed},
	}
	counts := make(map[*audited]map[byte]int64)
	var bad error
	next := []byte{0, 0}
	for next != nil && bad == nil {
		from := next
		next = nil
		err := a.r.Scan(from, nil, false, func(k, v []byte) bool {
			switch s, known := spaces[k[0]]; {
			case k[0] == 's': // which the audit of the state has seen
				if next, bad = a.skip(k); bad == nil {
					return false
				}
			case k[0] == peerSpace:
				next = []byte{peerSpace + 1}
				return false
			case bytes.Equal(k, machine.KeyGenesis()):
			case !known || len(k) < 1+s.idSize:
				bad = forged("record %x is of no known kind", k)
			default:
				x := a.known[aweigh.ScopeID(k[1:1+s.idSize])]
				if x == nil {
					bad = forged("record %x is of a scope that the store does not hold", k)
					break
				}
				if k[0] == 'n' && len(k) > 1+s.idSize {
					if counts[x] == nil {
						counts[x] = make(map[byte]int64)
					}
					counts[x][k[1+s.idSize]]++
				}
				bad = s.check(x, k, v)
			}
			return bad == nil
		})
		if err != nil {
			return err
		}
	}
	if bad != nil {
		return bad
	}
	for x, n := range counts {
		for _, letter := range []byte("hfvedoc") {
			if n[letter] != x.counts[letter] && x.state != nil {
				return forged("%d records %q of scope %s, of which %d belong to its chain", n[letter], letter, x.genesis.Hash().Short(), x.counts[letter])
			}
		}
	}
	return nil
}

// skip is where the state's records of a scope end that is known.
func (a *auditor) skip(k []byte) (next []byte, err error) {
	for id := range a.known {
		if from, to, _ := scope.Clear(id); bytes.HasPrefix(k, from) {
			return to, nil
		}
	}
	return nil, forged("record %x is of a scope that the store does not hold", k)
}

// own checks a record of the node about a scope; those of the chain were seen.
func (a *auditor) own(x *audited, k, v []byte) (err error) {
	id := x.genesis.Hash()
	head := 1 + len(id)
	if len(k) == head {
		return forged("record %x is of no known kind", k)
	}
	rest := k[head+1:]
	hash := len(rest) == len(aweigh.Hash{})
	switch k[head] {
	case 'h', 'f', 'v', 'e', 'd', 'o', 'c': // counted
	case 'u':
		if len(rest) > 0 || x.state == nil {
			err = errors.New("of no scope")
		}
	case 'O', 'S', 'V': // a snapshot that is fetched is checked before it is used
		if x.state == nil {
			return nil
		}
		if k[head] == 'V' {
			err = errors.New("a scope without a state has one")
		}
	case 'w': // was opened
	case 'W':
		if len(rest) != 2*len(aweigh.Hash{}) || !bytes.Equal(v, []byte{1}) {
			err = errors.New("of no mutation")
		}
	case 'x':
		if err = canon.Decode(v, new(machine.IslandRest)); err == nil && !hash {
			err = errors.New("of no island")
		}
	case 'b':
		var b *scope.Block
		if b, err = scope.DecodeBlock(v, scope.MostLimits(), nil); err == nil && (!hash || b.Hash() != aweigh.Hash(rest)) {
			err = errors.New("another block")
		}
		if err == nil && b.Header.Scope != id {
			err = errors.New("a block of another scope")
		}
	case 'p':
		var b *scope.CheckedBundle
		if b, err = scope.CheckBundle(v, scope.MostLimits(), votes.Verify); err == nil && (!hash || b.ID() != aweigh.Hash(rest)) {
			err = errors.New("another bundle")
		}
	case 'l':
		err = a.ballot(x, v, func(b votes.MotionBallot) []byte { return machine.KeyLate(id, b.ID()) }, k)
	case 'm':
		var m *scope.Minutes
		if m, err = scope.DecodeMinutes(v); err == nil && (!hash || !bytes.Equal(m.Encode(), v)) {
			err = errors.New("not the minutes of a motion")
		}
		if err == nil {
			err = a.minutes(x, votes.MotionID(rest), m)
		}
	case 't':
		err = a.trust(x, rest, v)
	default:
		return forged("record %x is of no known kind", k)
	}
	if err != nil {
		return forged("record %q of scope %s: %w", k[head], id.Short(), err)
	}
	return nil
}

// minutes checks those of a motion that the state has forgotten by the block that
// opened it, if that is here.
func (a *auditor) minutes(x *audited, id votes.MotionID, m *scope.Minutes) error {
	if x.state == nil {
		return errors.New("of a scope without a state")
	}
	h := machine.History{Reader: a.r, Scope: x.genesis.Hash()}
	b, err := h.Block(m.Motion.Height)
	if errors.Is(err, machine.ErrNoBlock) && (x.snapshot || x.counts['d'] > 0) {
		return nil
	}
	if err != nil {
		return err
	}
	if !b.Opens(id) {
		return errors.New("the block that should have opened it has not")
	}
	voters, err := m.Motion.Keys()
	if err != nil {
		return err
	}
	for i := range m.Ballots {
		if len(m.Ballots[i].Ballot) == 0 { // by a mutation that its voter signed
			continue
		}
		b, err := votes.DecodeMotionBallot(m.Ballots[i].Ballot)
		if err != nil {
			return err
		}
		if _, err := votes.CheckMotionBallot(b, x.genesis.Network(), x.genesis.Hash(), voters, nil); err != nil {
			return err
		}
	}
	return nil
}

// ballot checks a ballot on a motion and its place.
func (a *auditor) ballot(x *audited, raw []byte, place func(votes.MotionBallot) []byte, k []byte) error {
	b, err := votes.DecodeMotionBallot(raw)
	if err != nil {
		return err
	}
	if !bytes.Equal(place(b), k) {
		return errors.New("a ballot in the place of another")
	}
	if x.state == nil {
		return nil
	}
	mo, _, err := x.state.Motion(b.Motion)
	if err != nil {
		return err
	}
	voters := votes.KeySet{}
	if mo != nil {
		voters, err = mo.Keys()
	} else {
		voters, err = x.epoch.Electors()
	}
	if err != nil {
		return err
	}
	if _, ok := voters.Key(b.Voter); !ok { // it will not count
		return nil
	}
	_, err = votes.CheckMotionBallot(b, x.genesis.Network(), x.genesis.Hash(), voters, nil)
	return err
}

// boxed checks a record of the ballot box.
func (a *auditor) boxed(x *audited, k, v []byte) error {
	err := box.CheckStored(a.r, x.genesis.Network(), x.genesis.Hash(), k, v, func(raw []byte) error {
		return a.ballot(x, raw, func(votes.MotionBallot) []byte { return k }, k)
	})
	if err != nil {
		return forged("the ballot box of scope %s: %w", x.genesis.Hash().Short(), err)
	}
	return nil
}

// signed checks what is on record of what an anchor signed.
func (a *auditor) signed(x *audited, k, v []byte) error {
	keyring, err := x.keys(a.verify)
	if err != nil {
		return err
	}
	if err := votes.CheckRecorded(keyring, k, v); err != nil {
		return forged("the record of what the anchor signed in scope %s: %w", x.genesis.Hash().Short(), err)
	}
	return nil
}

// trust checks a change of an anchor's trust: each begins where the one before ends, and
// the last ends where the ledger is.
func (a *auditor) trust(x *audited, rest, v []byte) error {
	var c trust.Change
	if err := canon.Decode(v, &c); err != nil {
		return err
	}
	id := x.genesis.Hash()
	if len(rest) != len(aweigh.Hash{})+10 || c.Evidence.Anchor != aweigh.AnchorID(rest[:32]) || x.state == nil {
		return errors.New("a change of another anchor's trust")
	}
	at := aweigh.Height(binary.BigEndian.Uint64(rest[32:]))
	if at > x.state.Height() || !bytes.Equal(canon.Encode(c), v) || c.Evidence.Height > at {
		return errors.New("a change by a block that is not here")
	}
	ledger, err := x.state.Ledger()
	if err != nil {
		return err
	}
	standing, ok := ledger.Standing(c.Evidence.Anchor)
	after, last := standing.Score, !ok
	key := append(machine.Record(id, 't'), rest...)
	space := machine.Record(id, 't', rest[:32]...)
	var bad error
	found, anew := false, false
	err = a.r.Scan(append(bytes.Clone(key), 0), kv.PrefixEnd(space), false, func(_, raw []byte) bool {
		var next trust.Change
		bad = canon.Decode(raw, &next)
		after, found = next.Before, true
		anew = next.Evidence.Kind == trust.Founded // by another government, with a ledger of its own
		return false
	})
	if err = errors.Join(err, bad); err != nil {
		return err
	}
	if c.After != after && !anew && !(last && !found) && !x.snapshot {
		return errors.New("a change that the next one, or the ledger, does not follow")
	}
	return nil
}

// Unhint deletes the records that an audit does not look into and that a node finds
// again: addresses of peers, and parts of snapshots that are fetched.
func Unhint(r kv.Reader, commit func([]kv.Op) error) error {
	var ops []kv.Op
	drop := func(k []byte) {
		switch {
		case k[0] == peerSpace:
		case k[0] == 'n' && len(k) > 1+len(aweigh.ScopeID{}) && (k[33] == 'O' || k[33] == 'S'):
		default:
			return
		}
		ops = append(ops, kv.Del(bytes.Clone(k)))
	}
	err := r.Scan([]byte{'n'}, []byte{peerSpace + 1}, false, func(k, _ []byte) bool {
		drop(k)
		return true
	})
	for err == nil && len(ops) > 0 {
		n := min(len(ops), 10_000)
		err = commit(ops[:n])
		ops = ops[n:]
	}
	return err
}
