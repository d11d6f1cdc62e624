package box

import (
	"encoding/binary"
	"io"
	"math"
	"net"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/votes"
	"github.com/aweigh/aweigh/votes/reconcile"
)

// fleet is two boxes that share most of their ballots.
type fleet struct {
	a, b       *ship
	differ     int // ballots that one of them lacks
	difference int // their bytes
}

// newFleet makes boxes of n ballots each, of a thousand voters. Those that both
// have carry invalid signatures, because they are never verified again.
func newFleet(t testing.TB, n, differ int) *fleet {
	t.Helper()
	const voters = 1000
	p := newPeople(t, voters)
	shared := newShip(t, p, Limits{})
	unknown := Motion{Unknown, shared.known.all}
	most := n + differ
	loose := Limits{Ballots: most, PerVoter: most, Early: most, EarlyPerVoter: most, Bytes: math.MaxInt, VoterBytes: math.MaxInt}
	shared.limits = loose
	shared.reopen()
	signature := make([]byte, 64)
	for i := range n - differ/2 {
		binary.BigEndian.PutUint64(signature, uint64(i))
		v := votes.MotionBallot{
			MotionVote: votes.MotionVote{Network: network, Scope: scope, Motion: motionID(i / voters), Choice: votes.Approve},
			Voter:      p[i%voters].Public().ID(), Algorithm: votes.EdDSA, Signature: signature,
		}
		c, err := votes.StoredMotionBallot(v.Encode())
		if err != nil {
			t.Fatal(err)
		}
		_, ops, err := shared.box.Add(c, unknown)
		if err != nil {
			t.Fatal(err)
		}
		shared.disk.Apply(ops...)
	}
	f := &fleet{differ: differ}
	for i, s := range []**ship{&f.a, &f.b} {
		*s = &ship{t: t, disk: kv.NewOverlay(shared.disk), known: shared.known, limits: loose}
		(*s).reopen()
		for j := range differ / 2 {
			v := p.ballot(t, j%voters, 1_000_000+i*differ+j, votes.Approve)
			if _, err := (*s).offer(v); err != nil {
				t.Fatal(err)
			}
			f.difference += len(v.Encode())
		}
	}
	return f
}

// cost is the cost of a session.
type cost struct {
	bytes, messages int
	sessions        time.Duration // in the state machines of both sides
	verifying       time.Duration // decoding, verifying and adding what came
}

// meet reconciles the boxes, whose messages go by the road given.
func (f *fleet) meet(t testing.TB, road func([]byte) []byte) (c cost) {
	t.Helper()
	start := time.Now()
	first, message := reconcile.Initiate(f.a.box.Side(f.a.disk), reconcile.Salt{1})
	sessions := []*reconcile.Session{reconcile.Respond(f.b.box.Side(f.b.disk)), first}
	ships := []*ship{f.b, f.a}
	for turn := 0; message != nil; turn = 1 - turn {
		message = road(message)
		c.bytes += len(message)
		c.messages++
		out, items, _, err := sessions[turn].Step(message)
		if err != nil {
			t.Fatal(err)
		}
		verify := time.Now()
		for _, item := range items {
			v, err := votes.DecodeMotionBallot(item)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := ships[turn].offer(v); err != nil {
				t.Fatal(err)
			}
		}
		c.verifying += time.Since(verify)
		message = out
	}
	c.sessions = time.Since(start) - c.verifying
	return c
}

// TestAMillionBallotsReconcile: what docs/performance.md says of two boxes of
// 1,000,000 ballots that differ in 1,000. It takes half a minute and 2 GiB.
func TestAMillionBallotsReconcile(t *testing.T) {
	if os.Getenv("AWEIGH_MILLION") == "" {
		t.Skip("set AWEIGH_MILLION=1; it takes half a minute and 2 GiB of memory")
	}
	f := newFleet(t, 1_000_000, 1000)
	f.a.box, f.b.box = nil, nil
	before, start := heap(), time.Now()
	f.a.reopen()
	opened := time.Since(start)
	start = time.Now()
	f.a.box.Set()
	sealed := time.Since(start)
	t.Logf("opening a box of %d: %v, its fingerprints %v, %d bytes of memory for a ballot",
		f.a.box.Len(), opened.Round(time.Millisecond), sealed.Round(time.Millisecond), (heap()-before)/uint64(f.a.box.Len()))
	f.b.reopen()
	road := loopback(t)
	c := f.meet(t, road)
	t.Logf("%d ballots of %d bytes differ: %d bytes (%.2f times), %d messages; sessions %v, decoding, verifying and adding %v",
		f.differ, f.difference, c.bytes, float64(c.bytes)/float64(f.difference), c.messages,
		c.sessions.Round(time.Millisecond), c.verifying.Round(time.Millisecond))
	if f.a.box.Set().Fingerprint() != f.b.box.Set().Fingerprint() || f.a.box.Len() != 1_000_500 {
		t.Errorf("%d and %d ballots", f.a.box.Len(), f.b.box.Len())
	}
	if c.bytes > 3*f.difference {
		t.Errorf("%d bytes for a difference of %d", c.bytes, f.difference)
	}
	if c.sessions > 2*time.Second {
		t.Errorf("%v beyond verifying", c.sessions)
	}
	again := f.meet(t, road)
	t.Logf("again: %d bytes, %d messages, %v", again.bytes, again.messages, again.sessions.Round(time.Microsecond))
	if again.messages > 2 || again.bytes > 200 {
		t.Errorf("boxes that are equal: %+v", again)
	}
}

// loopback is a road through a TCP connection of this machine to itself.
func loopback(t *testing.T) func([]byte) []byte {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	near, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	far, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { near.Close(); far.Close() })
	return func(message []byte) []byte {
		wrote := make(chan error, 1)
		go func() {
			_, err := near.Write(message)
			wrote <- err
		}()
		got := make([]byte, len(message))
		if _, err := io.ReadFull(far, got); err != nil {
			t.Fatal(err)
		}
		if err := <-wrote; err != nil {
			t.Fatal(err)
		}
		return got
	}
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// BenchmarkMeet reconciles boxes of 100,000 ballots that differ in 1,000.
func BenchmarkMeet(b *testing.B) {
	f := newFleet(b, 100_000, 1000)
	a, c := *f.a, *f.b
	var bytes int
	var sessions time.Duration
	for b.Loop() {
		f.a, f.b = fork(&a), fork(&c)
		got := f.meet(b, func(message []byte) []byte { return message })
		bytes += got.bytes
		sessions += got.sessions
	}
	b.ReportMetric(float64(bytes)/float64(b.N)/float64(f.difference), "bytes/difference")
	b.ReportMetric(float64(sessions.Milliseconds())/float64(b.N), "ms-beside-verifying")
}

// fork is the ship with a box and disk of its own.
func fork(s *ship) *ship {
	c := *s
	c.disk = kv.NewOverlay(s.disk)
	c.reopen()
	return &c
}

func BenchmarkAdd(b *testing.B) {
	p := newPeople(b, 1)
	const most = math.MaxInt
	s := newShip(b, p, Limits{
		Ballots: most, PerVoter: most, Early: most, EarlyPerVoter: most, Bytes: most, VoterBytes: most,
	})
	voter := p[0].Public().ID()
	n := 0
	for b.Loop() {
		n++
		v := votes.MotionBallot{
			MotionVote: votes.MotionVote{Network: network, Scope: scope, Motion: aweigh.Sum(binary.BigEndian.AppendUint64(nil, uint64(n))), Choice: votes.Approve},
			Voter:      voter, Algorithm: votes.EdDSA, Signature: make([]byte, 64),
		}
		c, err := votes.StoredMotionBallot(v.Encode())
		if err != nil {
			b.Fatal(err)
		}
		if _, _, err := s.box.Add(c, Motion{Unknown, s.known.all}); err != nil {
			b.Fatal(err)
		}
	}
}
