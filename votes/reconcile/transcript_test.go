package reconcile

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/aweigh/aweigh"
)

var update = flag.Bool("update", false, "write testdata/session.txt anew")

// TestSessionsMatchTheTranscript pins fingerprints and messages, byte by byte:
// a change here is a change of the protocol. The names are the SHA-256 of 0, 1,
// 2, ... as 8 bytes, big-endian, and a member is its name.
func TestSessionsMatchTheTranscript(t *testing.T) {
	var s strings.Builder
	plain := func(from, to int) Side {
		var ids []aweigh.Hash
		for i := from; i < to; i++ {
			ids = append(ids, id(i))
		}
		return Side{Topic: aweigh.Sum([]byte("topic")), Set: setOf(ids...), Load: func(id aweigh.Hash) ([]byte, bool, error) { return id[:], true, nil }}
	}
	for _, n := range []int{0, 1, leafSize, leafSize + 1, 10_000} {
		fmt.Fprintf(&s, "fingerprint of %d names: %s\n", n, plain(0, n).Set.Fingerprint())
	}
	for _, c := range []struct{ a, b [2]int }{
		{[2]int{0, 0}, [2]int{0, 0}}, {[2]int{0, 0}, [2]int{0, 3}}, {[2]int{0, 3}, [2]int{0, 0}}, {[2]int{0, 3}, [2]int{1, 4}}, {[2]int{0, 60}, [2]int{2, 61}},
	} {
		fmt.Fprintf(&s, "\nann has %d to %d, bob has %d to %d\n", c.a[0], c.a[1]-1, c.b[0], c.b[1]-1)
		first, raw := Initiate(plain(c.a[0], c.a[1]), Salt{1, 2, 3})
		sessions := []*Session{Respond(plain(c.b[0], c.b[1])), first}
		for turn := 0; raw != nil; turn++ {
			m, err := decode(raw, 1<<20)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&s, "%s: %s\n     %x\n", [2]string{"ann", "bob"}[turn%2], m, raw)
			if raw, _, _, err = sessions[turn%2].Step(raw); err != nil {
				t.Fatal(err)
			}
		}
	}
	const file = "testdata/session.txt"
	if *update {
		if err := os.WriteFile(file, []byte(s.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(want) != s.String() {
		t.Errorf("sessions differ from %s; if the protocol is meant to change, run go test ./votes/reconcile -update", file)
	}
}

// String is for transcripts.
func (m message) String() string {
	var parts []string
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	for range m.Hello {
		add("hello")
	}
	for i := range m.Splits {
		p, _, _ := m.Splits[i].read()
		add("split %s %016b", p, m.Splits[i].Mask)
	}
	for i := range m.Lists {
		p, names, _ := m.Lists[i].read()
		add("list %s of %d", p, len(names))
	}
	for i := range m.Wants {
		p, names, _ := m.Wants[i].read()
		add("wants %d of %s", len(names), p)
	}
	if n := len(m.Items); n > 0 {
		add("%d members", n)
	}
	if m.More {
		add("more")
	}
	if len(parts) == 0 {
		add("nothing to say")
	}
	return strings.Join(parts, ", ")
}
