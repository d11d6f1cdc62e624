package box

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/votes"
	"github.com/aweigh/aweigh/votes/reconcile"
)

var network, scope = sumOf("network"), sumOf("scope")

func sumOf(s string) aweigh.Hash { return aweigh.Sum([]byte(s)) }

func motionID(n int) votes.MotionID {
	return aweigh.Sum(binary.BigEndian.AppendUint32([]byte("motion"), uint32(n)))
}

// people are voters with their keys.
type people []votes.PrivateKey

func newPeople(t testing.TB, n int) people { return newPeopleOf(t, votes.Ed25519, n) }

func newPeopleOf(t testing.TB, scheme string, n int) (p people) {
	t.Helper()
	for i := range n {
		k, err := votes.KeyFromSeed(scheme, binary.BigEndian.AppendUint32(make([]byte, 28), uint32(i+1)))
		if err != nil {
			t.Fatal(err)
		}
		p = append(p, k)
	}
	return p
}

type keys map[aweigh.Hash]votes.PublicKey

func (k keys) Key(id aweigh.Hash) (votes.PublicKey, bool) {
	v, ok := k[id]
	return v, ok
}

func (p people) keys() keys {
	k := make(keys)
	for _, key := range p {
		k[key.Public().ID()] = key.Public()
	}
	return k
}

func (p people) ballot(t testing.TB, voter, motion int, c votes.Choice) votes.MotionBallot {
	t.Helper()
	v := votes.MotionVote{Network: network, Scope: scope, Motion: motionID(motion), Choice: c}
	b, err := votes.SignMotionBallot(p[voter].Signer(), v, "")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// motions are the known states: unknown unless set.
type motions struct {
	all   votes.Voters
	known map[votes.MotionID]Motion
}

func (m motions) Motion(id votes.MotionID) Motion {
	if k, ok := m.known[id]; ok {
		return k
	}
	return Motion{Unknown, m.all}
}

// ship is a box with its store, in which every write is durable at once.
type ship struct {
	t      testing.TB
	box    *Box
	disk   *kv.Overlay
	known  motions
	limits Limits
}

type nothing struct{}

func (nothing) Get([]byte) ([]byte, bool, error)                               { return nil, false, nil }
func (nothing) Scan(_, _ []byte, _ bool, _ func(key, value []byte) bool) error { return nil }

func newShip(t testing.TB, p people, l Limits) *ship {
	s := &ship{t: t, disk: kv.NewOverlay(nothing{}), known: motions{p.keys(), make(map[votes.MotionID]Motion)}, limits: l}
	s.reopen()
	return s
}

// reopen forgets all but the disk.
func (s *ship) reopen() {
	s.t.Helper()
	b, ops, err := New(network, scope, s.limits, s.disk, s.known)
	if err != nil {
		s.t.Fatal(err)
	}
	s.disk.Apply(ops...)
	s.box = b
}

func (s *ship) offer(b votes.MotionBallot) (Outcome, error) {
	out, ops, err := s.box.Offer(b, s.known.Motion(b.Motion), nil)
	s.disk.Apply(ops...)
	return out, err
}

func (s *ship) open(motion int, who keys) {
	s.t.Helper()
	id := motionID(motion)
	s.known.known[id] = Motion{Open, who}
	ops, err := s.box.Opened(s.disk, id, who)
	if err != nil {
		s.t.Fatal(err)
	}
	s.disk.Apply(ops...)
}

func (s *ship) close(motion int) {
	s.t.Helper()
	id := motionID(motion)
	s.known.known[id] = Motion{State: Closed}
	ops, err := s.box.Closed(s.disk, id)
	if err != nil {
		s.t.Fatal(err)
	}
	s.disk.Apply(ops...)
}

// holds are the identities in the store, read the hard way.
func (s *ship) holds() (all []aweigh.Hash) {
	s.t.Helper()
	n := 0
	err := s.disk.Scan(nil, nil, false, func(key, value []byte) bool {
		if key[1+len(scope)] == atBallot {
			b, err := votes.DecodeMotionBallot(value)
			if err != nil {
				s.t.Fatal(err)
			}
			all = append(all, b.ID())
		} else {
			n++
		}
		return true
	})
	if err != nil || n != len(all) {
		s.t.Fatalf("%d ballots, %d in the index: %v", len(all), n, err)
	}
	slices.SortFunc(all, func(a, b aweigh.Hash) int { return bytes.Compare(a[:], b[:]) })
	return all
}

func (s *ship) sameAsDisk() {
	s.t.Helper()
	var set []aweigh.Hash
	s.box.Set().All(aweigh.Hash{}, func(id aweigh.Hash) bool { set = append(set, id); return true })
	if got := s.holds(); !slices.Equal(got, set) || s.box.Len() != len(set) {
		s.t.Fatalf("the box has %d ballots, its set %d, the disk %d", s.box.Len(), len(set), len(got))
	}
	for i, first := range append(set, aweigh.Hash{}) {
		var from, want []aweigh.Hash
		if want = set; i < len(set) {
			want = set[i:]
		}
		if err := Names(s.disk, scope, first, func(id aweigh.Hash) bool { from = append(from, id); return true }); err != nil || !slices.Equal(from, want) {
			s.t.Fatalf("from %s on the disk names %d ballots, the set %d: %v", first.Short(), len(from), len(want), err)
		}
	}
}

func TestBallotsAreRefusedForAReason(t *testing.T) {
	p := newPeople(t, 3)
	s := newShip(t, p[:2], Limits{Ballots: 5, PerVoter: 4, Early: 3, EarlyPerVoter: 2})
	s.open(1, p[:2].keys())
	s.open(2, p[:2].keys())
	s.open(4, p[:1].keys())
	s.known.known[motionID(3)] = Motion{State: Closed}
	bend := func(change func(*votes.MotionBallot)) votes.MotionBallot {
		b := p.ballot(t, 0, 1, votes.Approve)
		change(&b)
		return b
	}
	yes := votes.Approve
	for i, c := range []struct {
		name string
		b    votes.MotionBallot
		want Outcome
		err  error
	}{
		{"foreign", bend(func(b *votes.MotionBallot) { b.Network = sumOf("x") }), 0, votes.ErrForeign},
		{"other scope", bend(func(b *votes.MotionBallot) { b.Scope = sumOf("x") }), 0, votes.ErrOtherScope},
		{"forged", bend(func(b *votes.MotionBallot) { b.Signature = make([]byte, 64) }), 0, votes.ErrForged},
		{"malformed", bend(func(b *votes.MotionBallot) { b.Choice = 0 }), 0, votes.ErrMalformed},
		{"unknown voter", p.ballot(t, 2, 1, yes), 0, votes.ErrNotInRoster},
		{"unknown voter of an unknown motion", p.ballot(t, 2, 9, yes), 0, votes.ErrNotInRoster},
		{"not of this electorate", p.ballot(t, 1, 4, yes), 0, votes.ErrNotInRoster},
		{"closed", p.ballot(t, 0, 3, yes), 0, ErrClosed},
		{"good", p.ballot(t, 0, 1, yes), Added, nil},
		{"again", p.ballot(t, 0, 1, yes), Repeated, nil},
		{"again, forged", bend(func(b *votes.MotionBallot) { b.Signature = make([]byte, 64) }), Repeated, nil},
		{"the opposite", p.ballot(t, 0, 1, votes.Reject), Equivocated, nil},
		{"a third", p.ballot(t, 0, 1, votes.Reject), Repeated, nil},
		{"early", p.ballot(t, 0, 10, yes), Added, nil},
		{"early", p.ballot(t, 0, 11, yes), Added, nil},
		{"the voter's fifth", p.ballot(t, 0, 2, yes), 0, ErrVoterFull},
		{"early of another", p.ballot(t, 1, 10, yes), Added, nil},
		{"the sixth of all", p.ballot(t, 1, 1, yes), 0, ErrFull},
	} {
		got, err := s.offer(c.b)
		if got != c.want || !errors.Is(err, c.err) || (err == nil) != (c.err == nil) {
			t.Errorf("%d %s: %s, %v", i, c.name, got, err)
		}
		s.sameAsDisk()
	}
	s = newShip(t, p, Limits{Early: 3, EarlyPerVoter: 2})
	for i, want := range []error{nil, nil, ErrVoterFull} {
		if _, err := s.offer(p.ballot(t, 0, i, yes)); !errors.Is(err, want) {
			t.Errorf("early ballot %d of one: %v", i, err)
		}
	}
	for i, want := range []error{nil, ErrFull} {
		if _, err := s.offer(p.ballot(t, 1, i, yes)); !errors.Is(err, want) {
			t.Errorf("early ballot %d of another: %v", i, err)
		}
	}
	s.open(20, p.keys())
	if out, err := s.offer(p.ballot(t, 0, 20, yes)); out != Added {
		t.Errorf("what is early keeps out what is not: %v", err)
	}
}

// TestBoxesAreBoundedInBytes: long comments fill a box before the number of ballots does, early ones a quarter of it,
// and no ballot in the box is removed. A closed motion gives its bytes back, and a restart counts
// the same.
func TestBoxesAreBoundedInBytes(t *testing.T) {
	for _, scheme := range []string{votes.Ed25519, votes.MLDSA65} {
		t.Run(scheme, func(t *testing.T) { testBoundInBytes(t, scheme) })
	}
}

func testBoundInBytes(t *testing.T, scheme string) {
	p := newPeopleOf(t, scheme, 3)
	commented := func(voter, motion int) votes.MotionBallot {
		v := votes.MotionVote{Network: network, Scope: scope, Motion: motionID(motion), Choice: votes.Approve}
		b, err := votes.SignMotionBallot(p[voter].Signer(), v, strings.Repeat("c", 1000))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	size := len(commented(0, 0).Encode())
	if most := DefaultLimits; scheme == votes.Ed25519 && most.Bytes/most.Ballots < len(p.ballot(t, 0, 0, votes.Approve).Encode()) {
		t.Errorf("ballots without a comment have %d bytes", len(p.ballot(t, 0, 0, votes.Approve).Encode()))
	}
	s := newShip(t, p, Limits{Bytes: 40 * size, VoterBytes: 30 * size})
	fits := func(bytes int) int { return (bytes-votes.MaxMotionBallot)/size + 1 }
	// takes offers ballots of a voter until one is refused, which is to be after so many.
	takes := func(voter, motion, many int, want error) {
		t.Helper()
		var err error
		n := 0
		for ; err == nil && n <= many; n++ {
			_, err = s.offer(commented(voter, motion+n))
		}
		if n--; n != many || !errors.Is(err, want) {
			t.Errorf("%d ballots of voter %d are taken, %d are to be: %v", n, voter, many, err)
		}
		before := fmt.Sprint(s.box.voters, s.box.motions, s.box.load)
		if s.reopen(); fmt.Sprint(s.box.voters, s.box.motions, s.box.load) != before {
			t.Errorf("a box made anew counts %v, not %s", s.box.load, before)
		}
	}
	early, ofOne := fits(10*size), fits(30*size/4)
	takes(0, 100, ofOne, ErrVoterFull)
	takes(1, 200, early-ofOne, ErrFull)
	s.close(100)
	takes(1, 300, 1, ErrFull)
	for m := range 40 {
		s.open(m, p.keys())
	}
	ofOne, all := fits(30*size)-(ofOne-1), fits(40*size)
	takes(0, 0, ofOne, ErrVoterFull)
	takes(1, 0, all-early-ofOne, ErrFull)
	if s.box.Bytes() != all*size {
		t.Errorf("%d bytes are counted, of %d", s.box.Bytes(), all*size)
	}
	s.sameAsDisk()
	s.close(0) // two are on it
	takes(2, 1, 2, ErrFull)
}

// TestVotersHaveRoomForAllOpenMotions: a voter approves 1,000 open motions, and 512 early ones, with the longest
// comment, whatever its key.
func TestVotersHaveRoomForAllOpenMotions(t *testing.T) {
	for _, scheme := range []string{votes.Ed25519, votes.MLDSA65} {
		t.Run(scheme, func(t *testing.T) {
			if scheme == votes.MLDSA65 {
				testshort.Skip(t)
			}
			p := newPeopleOf(t, scheme, 1)
			for _, early := range []bool{true, false} {
				s, many := newShip(t, p, Limits{}), 1000
				if early {
					many = DefaultLimits.EarlyPerVoter
				}
				for m := range many {
					if !early {
						s.open(m, p.keys())
					}
					v := votes.MotionVote{Network: network, Scope: scope, Motion: motionID(m), Choice: votes.Approve}
					b, err := votes.SignMotionBallot(p[0].Signer(), v, strings.Repeat("c", votes.MaxComment))
					if err != nil {
						t.Fatal(err)
					}
					if _, err := s.offer(b); err != nil {
						t.Fatalf("early %v: ballot %d of %d bytes: %v", early, m, len(b.Encode()), err)
					}
				}
			}
		})
	}
}

// TestNothingAcknowledgedIsEvicted: a box that is full, or full of a voter's
// ballots, keeps its ballots, through restarts, until motions close.
func TestNothingAcknowledgedIsEvicted(t *testing.T) {
	p := newPeople(t, 6)
	s := newShip(t, p, Limits{Ballots: 40, PerVoter: 12, Early: 15, EarlyPerVoter: 3})
	for m := range 4 {
		s.open(m, p.keys())
	}
	r := rand.New(rand.NewPCG(3, 4))
	var kept []aweigh.Hash
	refused := map[error]int{}
	for range 600 {
		b := p.ballot(t, r.IntN(len(p)), r.IntN(12), votes.Choice(1+r.IntN(2)))
		out, err := s.offer(b)
		switch {
		case err != nil:
			for _, e := range []error{ErrFull, ErrVoterFull} {
				if errors.Is(err, e) {
					refused[e]++
				}
			}
		case out != Repeated:
			kept = append(kept, b.ID())
		}
		if r.IntN(20) == 0 {
			s.reopen()
		}
		for _, id := range kept {
			if !s.box.Has(id) {
				t.Fatalf("%s is gone", id.Short())
			}
		}
	}
	s.sameAsDisk()
	if refused[ErrFull] == 0 || refused[ErrVoterFull] == 0 || s.box.Len() != 40 {
		t.Fatalf("%d ballots, refused: %v", s.box.Len(), refused)
	}
	s.close(0)
	s.sameAsDisk()
	if out, err := s.offer(p.ballot(t, 0, 1, votes.Approve)); err != nil && errors.Is(err, ErrFull) {
		t.Errorf("no room after a motion closed: %s, %v", out, err)
	}
}

// TestEarlyBallotsWaitForTheirMotion: P29.
func TestEarlyBallotsWaitForTheirMotion(t *testing.T) {
	p := newPeople(t, 3)
	for _, restart := range []bool{false, true} {
		s := newShip(t, p, Limits{})
		for v := range p {
			s.offer(p.ballot(t, v, 1, votes.Approve))
			s.offer(p.ballot(t, v, 2, votes.Reject))
		}
		if s.box.Early() != 6 {
			t.Fatalf("%d early", s.box.Early())
		}
		if s.known.known[motionID(1)] = (Motion{Open, p[:2].keys()}); restart {
			s.reopen()
		} else {
			s.open(1, p[:2].keys())
		}
		if s.box.Early() != 3 || s.box.Len() != 5 {
			t.Fatalf("%d early of %d", s.box.Early(), s.box.Len())
		}
		var voters []aweigh.Hash
		err := s.box.Ballots(s.disk, motionID(1), func(c votes.CheckedMotionBallot) bool {
			voters = append(voters, c.Ballot().Voter)
			return true
		})
		if err != nil || len(voters) != 2 || slices.Contains(voters, p[2].Public().ID()) {
			t.Fatalf("%v, %v", voters, err)
		}
		for i, first := range voters {
			from := voters[i:]
			err := s.box.BallotsFrom(s.disk, motionID(1), first, func(c votes.CheckedMotionBallot) bool {
				if b := c.Ballot(); len(from) == 0 || b.Voter != from[0] {
					t.Fatalf("from voter %d on it visits %s", i, b.Voter.Short())
				}
				from = from[1:]
				return true
			})
			if err != nil || len(from) > 0 {
				t.Fatalf("from voter %d on %d are not visited: %v", i, len(from), err)
			}
		}
		s.sameAsDisk()
		if s.known.known[motionID(1)] = (Motion{State: Closed}); restart {
			s.reopen()
		} else {
			s.close(1)
		}
		if s.box.Early() != 3 || s.box.Len() != 3 {
			t.Fatalf("%d early of %d after the close", s.box.Early(), s.box.Len())
		}
		s.sameAsDisk()
	}
}

// TestP33BothBallotsAreKept: and are a proof that verifies alone.
func TestP33BothBallotsAreKept(t *testing.T) {
	p := newPeople(t, 2)
	s := newShip(t, p, Limits{})
	voter := p[0].Public().ID()
	s.offer(p.ballot(t, 0, 1, votes.Reject))
	if _, ok, err := s.box.equivocation(s.disk, motionID(1), voter); ok || err != nil {
		t.Fatalf("a proof against an honest voter, %v", err)
	}
	if out, _ := s.offer(p.ballot(t, 0, 1, votes.Approve)); out != Equivocated {
		t.Fatal(out)
	}
	s.reopen()
	e, ok, err := s.box.equivocation(s.disk, motionID(1), voter)
	if !ok || err != nil {
		t.Fatal(err)
	}
	if err := e.Check(network, scope, p.keys(), nil); err != nil || e.Voter() != voter {
		t.Fatal(err)
	}
}

// TestBoxesDoNotDependOnThePath: steps in any order, with restarts, give a box
// that is as if made anew, with the same loads.
func TestBoxesDoNotDependOnThePath(t *testing.T) {
	p := newPeople(t, 4)
	ballots := make(map[[3]int]votes.MotionBallot)
	for v := range p {
		for m := range 5 {
			for c := range 2 {
				ballots[[3]int{v, m, c}] = p.ballot(t, v, m, votes.Choice(1+c))
			}
		}
	}
	rapid.Check(t, func(r *rapid.T) {
		s := newShip(t, p, Limits{Ballots: 25, PerVoter: 8, Early: 10, EarlyPerVoter: 5})
		for range rapid.IntRange(0, 80).Draw(r, "steps") {
			m := rapid.IntRange(0, 4).Draw(r, "motion")
			state := s.known.Motion(motionID(m)).State
			switch n := rapid.IntRange(0, 12).Draw(r, "step"); {
			case n == 0 && state == Unknown:
				s.open(m, p[:3].keys())
			case n == 1 && state == Open:
				s.close(m)
			case n == 2:
				s.reopen()
			default:
				s.offer(ballots[[3]int{rapid.IntRange(0, 3).Draw(r, "voter"), m, n % 2}])
			}
			s.sameAsDisk()
		}
		old := s.box
		s.reopen()
		if fmt.Sprint(old.voters, old.motions, old.load) != fmt.Sprint(s.box.voters, s.box.motions, s.box.load) {
			t.Fatalf("%v %v %v, made anew %v %v %v",
				old.voters, old.motions, old.load, s.box.voters, s.box.motions, s.box.load)
		}
		if old.Set().Fingerprint() != s.box.Set().Fingerprint() {
			t.Fatal("another set when made anew")
		}
	})
}

func TestDamagedBoxesDoNotOpen(t *testing.T) {
	p := newPeople(t, 1)
	s := newShip(t, p, Limits{})
	s.offer(p.ballot(t, 0, 1, votes.Approve))
	b := p.ballot(t, 0, 1, votes.Approve)
	for name, op := range map[string]kv.Op{
		"a key too long":  kv.Set(append(s.box.indexKey(b.ID()), 0), make([]byte, 65)),
		"a short value":   kv.Set(s.box.indexKey(b.ID()), make([]byte, 64)),
		"another ballot":  kv.Set(s.box.indexKey(sumOf("x")), make([]byte, 65)),
		"another network": {},
	} {
		disk := kv.NewOverlay(s.disk)
		net := network
		if op.Key == nil {
			net = sumOf("other")
		} else {
			disk.Apply(op)
		}
		if _, _, err := New(net, scope, Limits{}, disk, s.known); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
	}
	s.disk.Apply(kv.Set(s.box.ballotKey(placeOf(&b)), []byte{1}))
	if err := s.box.Ballots(s.disk, motionID(1), func(votes.CheckedMotionBallot) bool { return true }); !errors.Is(err, ErrDamaged) {
		t.Errorf("a damaged ballot: %v", err)
	}
}

// meet brings two boxes to their union, by messages.
func meet(t testing.TB, a, b *ship) (bytes int) {
	t.Helper()
	first, message := reconcile.Initiate(a.box.Side(a.disk), reconcile.Salt{1})
	sessions := []*reconcile.Session{reconcile.Respond(b.box.Side(b.disk)), first}
	ships := []*ship{b, a}
	for turn := 0; message != nil; turn = 1 - turn {
		bytes += len(message)
		out, items, _, err := sessions[turn].Step(message)
		if err != nil {
			t.Fatal(err)
		}
		for _, item := range items {
			v, err := votes.DecodeMotionBallot(item)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := ships[turn].offer(v); err != nil {
				t.Fatal(err)
			}
		}
		message = out
	}
	return bytes
}

// TestBoxesThatMeetAreTheirUnion: P30, and the tally of all is the same.
func TestBoxesThatMeetAreTheirUnion(t *testing.T) {
	p := newPeople(t, 20)
	ships := []*ship{newShip(t, p, Limits{}), newShip(t, p, Limits{}), newShip(t, p, Limits{})}
	r := rand.New(rand.NewPCG(5, 6))
	all := newShip(t, p, Limits{})
	for v := range p {
		for m := range 15 {
			b := p.ballot(t, v, m, votes.Choice(1+r.IntN(2)))
			for _, s := range []*ship{ships[r.IntN(3)], ships[r.IntN(3)], all} {
				if _, err := s.offer(b); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	meet(t, ships[0], ships[1])
	meet(t, ships[1], ships[2])
	meet(t, ships[2], ships[0])
	for i, s := range ships {
		s.sameAsDisk()
		if s.box.Set().Fingerprint() != all.box.Set().Fingerprint() {
			t.Errorf("box %d has %d ballots of %d", i, s.box.Len(), all.box.Len())
		}
	}
	other := newShip(t, p, Limits{})
	other.box.scope = sumOf("another")
	_, hello := reconcile.Initiate(other.box.Side(other.disk), reconcile.Salt{})
	if _, _, _, err := reconcile.Respond(all.box.Side(all.disk)).Step(hello); !errors.Is(err, reconcile.ErrTopic) {
		t.Errorf("boxes of two scopes: %v", err)
	}
}
