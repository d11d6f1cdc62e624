package reconcile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
)

// side is a set whose members can be loaded: their name and some bytes.
func side(ids ...aweigh.Hash) Side {
	return Side{Topic: id(-7), Set: setOf(ids...), Load: load}
}

func load(id aweigh.Hash) ([]byte, bool, error) {
	return append(bytes.Clone(id[:]), make([]byte, int(id[31])*3)...), true, nil
}

// outcome is the content of both sides after a session, with its costs.
type outcome struct {
	a, b     []aweigh.Hash
	messages int
	bytes    int
	largest  int
}

func run(t interface{ Fatalf(string, ...any) }, a, b Side) (o outcome) {
	o.a, o.b = names(a.Set), names(b.Set)
	first, message := Initiate(a, Salt{1, 2, 3})
	sides := []*Session{Respond(b), first}
	got := []*[]aweigh.Hash{&o.b, &o.a}
	limits := []int{a.Limits.orDefault().Message, b.Limits.orDefault().Message} // the sender's
	finished := [2]bool{}
	for turn := 0; message != nil; turn = 1 - turn {
		o.messages++
		o.bytes += len(message)
		o.largest = max(o.largest, len(message))
		if len(message) > limits[turn] {
			t.Fatalf("a message of %d bytes, the limit is %d", len(message), limits[turn])
		}
		out, items, done, err := sides[turn].Step(message)
		if err != nil {
			t.Fatalf("%v", err)
		}
		for _, item := range items {
			*got[turn] = append(*got[turn], aweigh.Hash(item))
		}
		finished[turn] = done
		message = out
	}
	if finished != [2]bool{true, true} {
		t.Fatalf("done: %v", finished)
	}
	slices.SortFunc(o.a, compare)
	slices.SortFunc(o.b, compare)
	return o
}

// TestSessionsEndInTheUnion: whatever the sets, and however small the messages,
// both sides have all at the end, and nothing came twice.
func TestSessionsEndInTheUnion(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var a, b, all []aweigh.Hash
		size := rapid.SampledFrom([]int{0, 3, 50, 600, 3000}).Draw(t, "size")
		only := rapid.SampledFrom([]int{0, 2, 50, 100}).Draw(t, "percent in one alone")
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		for range size {
			id := near(r.IntN(1<<20), r.IntN(3)*20)
			all = append(all, id)
			switch {
			case r.IntN(100) >= only:
				a, b = append(a, id), append(b, id)
			case r.IntN(2) == 0:
				a = append(a, id)
			default:
				b = append(b, id)
			}
		}
		slices.SortFunc(all, compare)
		all = slices.Compact(all)
		x, y := side(a...), side(b...)
		x.Limits.Item, y.Limits.Item = 800, 800
		x.Limits.Message = rapid.SampledFrom([]int{1, 5000, 1 << 20}).Draw(t, "message")
		y.Limits.Message = x.Limits.Message
		o := run(t, x, y)
		if !slices.Equal(o.a, all) || !slices.Equal(o.b, all) {
			t.Fatalf("%d and %d names of %d", len(o.a), len(o.b), len(all))
		}
	})
}

// TestCostFollowsTheDifference: fingerprints and names cost some hundred bytes
// for each member that one side lacks, and two messages where none does.
func TestCostFollowsTheDifference(t *testing.T) {
	var base []aweigh.Hash
	for i := range 50_000 {
		base = append(base, id(i))
	}
	for _, differ := range []int{0, 1, 10, 100, 1000} {
		a, b := slices.Clone(base), slices.Clone(base)
		payload := 0
		for i := range differ {
			id := id(1_000_000 + i)
			item, _, _ := load(id)
			payload += len(item)
			if i%2 == 0 {
				a = append(a, id)
			} else {
				b = append(b, id)
			}
		}
		o := run(t, side(a...), side(b...))
		if len(o.a) != len(base)+differ || len(o.b) != len(o.a) {
			t.Fatalf("%d differ: %d and %d names", differ, len(o.a), len(o.b))
		}
		overhead := o.bytes - payload
		t.Logf("%d differ: %d messages, %d bytes beside the members", differ, o.messages, overhead)
		if overhead > 200+1000*differ || o.messages > 12 {
			t.Errorf("%d differ: %d messages, %d bytes beside the members", differ, o.messages, overhead)
		}
	}
}

func TestEmptyMeetsFull(t *testing.T) {
	var full []aweigh.Hash
	payload := 0
	for i := range 20_000 {
		full = append(full, id(i))
		item, _, _ := load(id(i))
		payload += len(item) + 3
	}
	for _, pair := range [][2]Side{{side(), side(full...)}, {side(full...), side()}} {
		o := run(t, pair[0], pair[1])
		if len(o.a) != len(full) || len(o.b) != len(full) || o.bytes > payload+100*o.messages {
			t.Errorf("%d and %d names of %d, %d bytes for %d", len(o.a), len(o.b), len(full), o.bytes, payload)
		}
	}
}

func TestMembersThatAreGoneAreLeftOut(t *testing.T) {
	a, b := side(id(1), id(2)), side(id(3))
	a.Load = func(i aweigh.Hash) ([]byte, bool, error) {
		item, _, err := load(i)
		return item, i != id(1), err
	}
	if o := run(t, a, b); len(o.b) != 2 || len(o.a) != 3 {
		t.Errorf("%d and %d", len(o.a), len(o.b))
	}
	a.Load = func(aweigh.Hash) ([]byte, bool, error) { return nil, false, errors.ErrUnsupported }
	s, hello := Initiate(b, Salt{})
	out, _, _, err := Respond(a).Step(hello)
	if err != nil {
		t.Fatal(err)
	}
	if out, _, _, err = s.Step(out); err != nil {
		t.Fatal(err)
	}
	r := Respond(a)
	r.Step(hello)
	if _, _, done, err := r.Step(out); !errors.Is(err, errors.ErrUnsupported) || !done {
		t.Errorf("a failing store: %v", err)
	}
}

func TestTopicsAreNotMixed(t *testing.T) {
	_, hello := Initiate(side(), Salt{})
	other := side()
	other.Topic = id(-8)
	if _, _, _, err := Respond(other).Step(hello); !errors.Is(err, ErrTopic) {
		t.Errorf("%v", err)
	}
}

// TestFingerprintsAreSalted: shortened hashes on the wire differ in every
// session, so members that look alike cannot be prepared.
func TestFingerprintsAreSalted(t *testing.T) {
	var full []aweigh.Hash
	for i := range 100 {
		full = append(full, id(i))
	}
	var answers [2]message
	for i := range answers {
		_, hello := Initiate(side(id(-1)), Salt{byte(i)})
		out, _, _, err := Respond(side(full...)).Step(hello)
		if err != nil {
			t.Fatal(err)
		}
		if answers[i], err = decode(out, 1<<20); err != nil || len(answers[i].Splits) != 1 {
			t.Fatal(err)
		}
	}
	_, a, _ := answers[0].Splits[0].read()
	_, b, _ := answers[1].Splits[0].read()
	for d := range a {
		if a[d] == b[d] {
			t.Errorf("kid %d has one fingerprint in two sessions", d)
		}
	}
	if (&Salt{1}).name(id(1)) == (&Salt{2}).name(id(1)) {
		t.Error("a name is cut alike in two sessions")
	}
}

// TestUnaskedAnswersEndTheSession: a message that a peer may not send ends the
// session at once.
func TestUnaskedAnswersEndTheSession(t *testing.T) {
	var full []aweigh.Hash
	for i := range 5000 {
		full = append(full, id(i))
	}
	mine := side(full...)
	hello := func() message {
		_, raw := Initiate(side(id(-1)), Salt{9})
		m, _ := decode(raw, 1<<20)
		return m
	}
	root, deep := Prefix{}.append(nil), Prefix{}.kid(3).kid(4).append(nil)
	kid := Prefix{}.kid(3).append(nil)
	sums := bytes.Repeat([]byte{7}, sumSize)
	for _, c := range []struct {
		name string
		say  []message // the last is refused
		want error
	}{
		{"no hello", []message{{Lists: []list{{Prefix: root}}}}, ErrProtocol},
		{"two hellos", []message{hello(), hello()}, ErrProtocol},
		{"two hellos at once", []message{{Hello: append(hello().Hello, hello().Hello...)}}, ErrProtocol},
		{"hello with more", []message{{Hello: hello().Hello, Items: [][]byte{{1}}}}, ErrProtocol},
		{"hello with a short salt", []message{{Hello: []hello_{{Topic: mine.Topic, Salt: []byte{1}, Sum: sums}}}}, ErrProtocol},
		{"the whole again", []message{hello(), {Lists: []list{{Prefix: root}}}}, ErrProtocol},
		{"a grandchild", []message{hello(), {Lists: []list{{Prefix: deep}}}}, ErrProtocol},
		{"a kid twice", []message{hello(), {Lists: []list{{Prefix: kid}, {Prefix: kid}}}}, ErrProtocol},
		{"a kid again", []message{hello(), {Lists: []list{{Prefix: kid}}}, {Splits: []split{{Prefix: kid, Mask: 1, Sums: sums}}}}, ErrProtocol},
		{"a split of nothing", []message{hello(), {Splits: []split{{Prefix: kid}}}}, ErrProtocol},
		{"a split with too few sums", []message{hello(), {Splits: []split{{Prefix: kid, Mask: 3, Sums: sums}}}}, ErrProtocol},
		{"a list too long", []message{hello(), {Lists: []list{{Prefix: kid, Names: make([]byte, nameSize*(leafSize+1))}}}}, ErrProtocol},
		{"a list of half names", []message{hello(), {Lists: []list{{Prefix: kid, Names: []byte{1}}}}}, ErrProtocol},
		{"wants what was not listed", []message{hello(), {Wants: []list{{Prefix: kid, Names: make([]byte, nameSize)}}}}, ErrProtocol},
		{"an empty item", []message{hello(), {Items: [][]byte{{}}}}, ErrProtocol},
		{"a large item", []message{hello(), {Items: [][]byte{make([]byte, defaultLimits.Item+1)}}}, ErrProtocol},
		{"more of nothing", []message{hello(), {More: true}}, ErrProtocol},
		{"another format", []message{{Format: 2, Hello: hello().Hello}}, ErrProtocol},
	} {
		s := Respond(mine)
		for i, m := range c.say {
			if m.Format == 0 {
				m.Format = format
			}
			_, _, _, err := s.Step(canon.Encode(m))
			if last := i == len(c.say)-1; last != (err != nil) || last && !errors.Is(err, c.want) {
				t.Errorf("%s, message %d: %v", c.name, i, err)
			}
		}
		if _, _, done, err := s.Step(canon.Encode(message{Format: format})); err == nil || !done {
			t.Errorf("%s: the session goes on", c.name)
		}
	}
	s := Respond(side())
	_, start := Initiate(side(), Salt{})
	if out, _, done, err := s.Step(start); err != nil || !done || out == nil {
		t.Fatalf("two empty sets: %v", err)
	}
	if _, _, _, err := s.Step(start); !errors.Is(err, ErrProtocol) {
		t.Errorf("after the last message: %v", err)
	}
}

type hello_ = hello

// TestSessionsAreBounded: rounds, bytes and members.
func TestSessionsAreBounded(t *testing.T) {
	item := canon.Encode(message{Format: format, Items: [][]byte{make([]byte, 100)}, More: true})
	for name, l := range map[string]Limits{
		"rounds":  {Rounds: 50},
		"bytes":   {Bytes: 50 * int64(len(item))},
		"members": {Items: 50},
	} {
		x := side()
		x.Limits = l
		s := Respond(x)
		_, message := Initiate(side(id(1)), Salt{})
		for n := 0; ; n++ {
			_, _, _, err := s.Step(message)
			if message = item; err == nil && n < 60 {
				continue
			}
			if !errors.Is(err, ErrLimit) || n < 48 {
				t.Errorf("%s: after %d messages: %v", name, n, err)
			}
			break
		}
	}
	var full []aweigh.Hash
	for i := range 2000 {
		full = append(full, id(i))
	}
	x := side(full...)
	x.Limits = Limits{Bytes: 100_000, Message: 20_000}
	s := Respond(x)
	_, message := Initiate(side(), Salt{})
	for n := 0; ; n++ {
		_, _, _, err := s.Step(message)
		message = canon.Encode(emptyMessage)
		if err != nil || n > 10 {
			if !errors.Is(err, ErrLimit) {
				t.Errorf("sent %d bytes of 100,000: %v", s.Stats().BytesSent, err)
			}
			break
		}
	}
}

var emptyMessage = message{Format: format}

// liar answers every question with lies: it splits all that is split, with
// fingerprints of nothing, and asks for all that is listed.
func liar(m *message, n *uint64) message {
	out := message{Format: format}
	lie := func() []byte {
		*n++
		return binary.BigEndian.AppendUint64(make([]byte, 0, sumSize), *n*0x9e3779b97f4a7c15)
	}
	for i := range m.Splits {
		p, _, _ := m.Splits[i].read()
		for d := range fanout {
			s := split{Prefix: p.kid(d).append(nil), Mask: 1<<fanout - 1}
			for range fanout {
				s.Sums = append(s.Sums, append(lie(), 0, 0, 0, 1)...)
			}
			out.Splits = append(out.Splits, s)
		}
	}
	for i := range m.Lists {
		if len(m.Lists[i].Names) > 0 {
			out.Wants = append(out.Wants, m.Lists[i])
		}
	}
	return out
}

// TestLiarsWalkTheTreeOnce: a peer that reports every range as different gets
// as much as with an empty set, and not more than a few times its bytes.
func TestLiarsWalkTheTreeOnce(t *testing.T) {
	var full []aweigh.Hash
	payload := 0
	for i := range 30_000 {
		full = append(full, id(i))
		item, _, _ := load(id(i))
		payload += len(item)
	}
	s := Respond(side(full...))
	_, raw := Initiate(side(id(-1)), Salt{})
	n := uint64(0)
	for {
		out, _, done, err := s.Step(raw)
		if err != nil {
			t.Fatal(err)
		}
		if done {
			break
		}
		m, err := decode(out, 1<<30)
		if err != nil {
			t.Fatal(err)
		}
		answer := liar(&m, &n)
		for len(answer.Splits) > 4000 { // no more than one message may hold
			answer.Splits = answer.Splits[:4000]
		}
		raw = canon.Encode(answer)
	}
	st := s.Stats()
	t.Logf("%+v", st)
	if st.BytesSent > 3*int64(payload) || st.ItemsSent > len(full) || len(s.tell)+len(s.answer) > 0 {
		t.Errorf("%+v, and the members are %d bytes", st, payload)
	}
}

func FuzzDecodeMessage(f *testing.F) {
	_, hello := Initiate(side(id(1)), Salt{})
	f.Add(hello)
	f.Add(canon.Encode(message{Format: format, Splits: []split{{Prefix: []byte{0}, Mask: 1, Sums: make([]byte, sumSize)}}, Lists: []list{{Prefix: []byte{1, 0x10}, Names: make([]byte, nameSize)}}}))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := decode(data, 1<<16)
		if err != nil {
			if !errors.Is(err, ErrProtocol) {
				t.Fatal(err)
			}
			return
		}
		if !bytes.Equal(canon.Encode(m), data) {
			t.Fatalf("%x is another encoding of %x", data, canon.Encode(m))
		}
	})
}

// FuzzSession: a peer sends anything; the fuzzer's bytes choose, mostly among
// messages that the session expects.
func FuzzSession(f *testing.F) {
	var some []aweigh.Hash
	for i := range 700 {
		some = append(some, near(i, i%2*10))
	}
	mine := side(some...)
	mine.Limits = Limits{Item: 900, Message: 4000, Rounds: 200, Bytes: 1 << 20, Items: 500}
	f.Add([]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9})
	f.Add(bytes.Repeat([]byte{1, 0xff, 7}, 50))
	f.Fuzz(func(t *testing.T, script []byte) {
		next := func() byte {
			if len(script) == 0 {
				return 0
			}
			b := script[0]
			script = script[1:]
			return b
		}
		s := Respond(mine)
		_, raw := Initiate(side(id(-1)), Salt{next()})
		if next()%8 == 7 {
			s, _ = Initiate(mine, Salt{})
			raw = canon.Encode(emptyMessage)
		}
		for rounds := 0; ; rounds++ {
			if rounds > 201 {
				t.Fatal("no end")
			}
			out, _, done, err := s.Step(raw)
			st := s.Stats()
			if len(out) > 4000 || st.BytesSent > 1<<20 && err == nil || st.ItemsSent > 4*len(some) || len(s.tell) > 16*len(some) {
				t.Fatalf("%d bytes, %+v", len(out), st)
			}
			if err != nil || done {
				if err != nil && !errors.Is(err, ErrProtocol) && !errors.Is(err, ErrLimit) && !errors.Is(err, ErrTopic) {
					t.Fatal(err)
				}
				return
			}
			m, err := decode(out, 4000)
			if err != nil {
				t.Fatal(err)
			}
			raw = answerBy(next, &m, len(script))
		}
	})
}

func answerBy(next func() byte, m *message, left int) []byte {
	out := message{Format: format, More: next()%4 == 1 && left > 0}
	for i := range m.Splits {
		p, _, _ := m.Splits[i].read()
		for d := range min(fanout, int(next())%20) {
			kid := p.kid(d)
			switch next() % 4 {
			case 0:
				mask := uint16(next())<<8 | uint16(next())
				sp := split{Prefix: kid.append(nil), Mask: mask}
				for j := range fanout {
					if mask>>j&1 == 1 {
						sp.Sums = append(sp.Sums, bytes.Repeat([]byte{next()}, sumSize)...)
					}
				}
				out.Splits = append(out.Splits, sp)
			case 1:
				out.Lists = append(out.Lists, list{Prefix: kid.append(nil), Names: bytes.Repeat([]byte{next()}, nameSize*int(next()%34))})
			case 2:
				out.Wants = append(out.Wants, list{Prefix: kid.append(nil), Names: make([]byte, nameSize)})
			}
		}
	}
	for i := range m.Lists {
		if next()%3 > 0 {
			out.Wants = append(out.Wants, m.Lists[i])
		}
	}
	for range next() % 4 {
		out.Items = append(out.Items, make([]byte, 1+int(next())))
	}
	raw := canon.Encode(out)
	if next()%32 == 31 {
		raw[int(next())%len(raw)] ^= next()
	}
	return raw
}

func ExampleInitiate() {
	ann, bob := side(id(1), id(2)), side(id(2), id(3), id(4))
	a, message := Initiate(ann, Salt{}) // a salt should be random
	b := Respond(bob)
	for turn, s := 0, b; message != nil; turn++ {
		var items [][]byte
		message, items, _, _ = s.Step(message)
		fmt.Printf("%s gets %d\n", [2]string{"bob", "ann"}[turn%2], len(items))
		if s = a; turn%2 == 1 {
			s = b
		}
	}
	// Output:
	// bob gets 0
	// ann gets 0
	// bob gets 1
	// ann gets 2
	// bob gets 0
}
