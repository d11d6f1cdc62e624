package wysiwys

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/internal/plain"
	"github.com/aweigh/aweigh/internal/vary"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
)

// forms are the renderings of a value, which must all read back.
func forms(t *testing.T, path string, v any, empty func() any, inForce *scope.Policy) (text, full, data string) {
	t.Helper()
	s, err := check(canon.Encode(v), v, inForce, empty)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	raw, err := json.Marshal(s.Full)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return s.Text(), s.Full.Text(), string(raw)
}

// skip is what cannot be changed alone: a scheme is one with its bytes, encodings are varied by
// their content, and what an opening fills in is zero in a policy.
var skip = []string{".Key.Scheme", ".Key.Bytes", ".Who", ".Content", ".Grants", ".By.Scheme", ".By.Bytes", ".To.Scheme", ".To.Bytes"}

func ofPolicy(path string) bool {
	return strings.Contains(path, "Policy.Approvals[0].Finalize") || strings.HasSuffix(path, "Policy.Approvals[0].Sponsor")
}

// TestEveryFieldIsRendered: no field of what people sign can change without changing the
// text and the JSON, and both give the value back.
func TestEveryFieldIsRendered(t *testing.T) {
	base := scope.OpenPolicy(quorum.BFT)
	t.Run("decision", func(t *testing.T) {
		varied(t, vary.Decision(), func(d scope.Decision) any { return &d }, func() any { return new(scope.Decision) }, &base)
	})
	t.Run("transaction", func(t *testing.T) {
		varied(t, vary.Txn(), func(x scope.Txn) any { m := vary.Mutation(scope.Write, x); return &m }, func() any { return new(scope.Mutation) }, &base)
	})
	t.Run("mutation", func(t *testing.T) {
		m := vary.Mutation(scope.Withdraw, scope.Withdrawal{Motion: [32]byte{1}})
		m.Class = scope.Withdraw
		vary.Each(m, append(skip, ".Class"), func(path string, changed scope.Mutation) {
			a, _, b := forms(t, path, &m, func() any { return new(scope.Mutation) }, nil)
			x, _, y := forms(t, path, &changed, func() any { return new(scope.Mutation) }, nil)
			if a == x || b == y {
				t.Errorf("%s is not rendered", path)
			}
		})
	})
	t.Run("grant", func(t *testing.T) {
		varied(t, vary.Grant(), func(g scope.Grant) any {
			m := vary.Mutation(scope.Write, vary.Txn())
			m.Grants = [][]byte{g.Encode()}
			return &m
		}, func() any { return new(scope.Mutation) }, &base)
	})
	t.Run("motion", func(t *testing.T) {
		varied(t, vary.Motion(), func(m scope.Motion) any { return &m }, func() any { return new(scope.Motion) }, &base)
	})
}

func varied[T any](t *testing.T, value T, as func(T) any, empty func() any, base *scope.Policy) {
	text, full, data := forms(t, "all", as(value), empty, base)
	n := 0
	vary.Each(value, append(skip, ".Mutation"), func(path string, changed T) {
		if ofPolicy(path) {
			return
		}
		n++
		x, y, z := forms(t, path, as(changed), empty, base)
		if x == text || y == full || z == data {
			t.Errorf("%s is not rendered in text (%v), in full (%v), in JSON (%v)", path, x != text, y != full, z != data)
		}
	})
	if n < 8 {
		t.Errorf("%d fields", n)
	}
}

// TestWhatIsNotShownIsNotSigned: a field that this program does not know, or that has no
// place in a text, is an error, and so is a text that stands for something else.
func TestWhatIsNotShownIsNotSigned(t *testing.T) {
	p := scope.OpenPolicy(quorum.BFT)
	p.EpochBlocks++
	d := scope.Decision{Kind: scope.SetPolicy, Policy: &p}
	raw := canon.Encode(d)
	if _, shown, err := Decision(raw, nil); err != nil || !strings.Contains(shown.Full.Text(), "drift: 500ms") {
		t.Fatalf("%v", err)
	}
	// One more field of the limits, as a newer version would write it.
	limits := canon.Encode(p.Limits)
	at := bytes.Index(raw, limits)
	newer := append([]byte{limits[0] + 1}, limits[1:]...)
	newer = append(append(append(append([]byte{}, raw[:at]...), newer...), 7), raw[at+len(limits):]...)
	if _, _, err := Decision(newer, nil); !errors.Is(err, ErrHidden) {
		t.Errorf("of a newer version: %v", err)
	}
	p.Approvals = []scope.Approval{{Matter: scope.Policies, Num: 1, Den: 1, Window: 1e9, Sponsor: [32]byte{1}}}
	if _, _, err := Decision(canon.Encode(d), nil); !errors.Is(err, ErrHidden) {
		t.Errorf("a field of an approval that no text has: %v", err)
	}
	if _, err := check(raw, &d, nil, func() any { return new(scope.Decision) }); !errors.Is(err, ErrHidden) {
		t.Errorf("a text that stands for something else: %v", err)
	}
	if _, _, err := Mutation(canon.Encode(vary.Mutation(99, p)), nil); !errors.Is(err, ErrHidden) {
		t.Errorf("a mutation of an unknown class: %v", err)
	}
	if _, _, err := Decision(canon.Encode(scope.Decision{Kind: 99}), nil); !errors.Is(err, ErrHidden) {
		t.Errorf("an unknown decision: %v", err)
	}
}

// TestReorderedApprovalsAreShown: a change that the difference of two policies does not show
// is shown as the whole policy.
func TestReorderedApprovalsAreShown(t *testing.T) {
	p := vary.Policy()
	more := p.Approvals[0]
	more.Prefix = []byte("/b/")
	p.Approvals = append(p.Approvals, more)
	was := vary.Clone(p)
	p.Approvals[0], p.Approvals[1] = p.Approvals[1], p.Approvals[0]
	text, _, _ := forms(t, "", &scope.Decision{Kind: scope.SetPolicy, Policy: &p}, func() any { return new(scope.Decision) }, &was)
	if !strings.Contains(text, "drift") {
		t.Errorf("it is not shown in full:\n%s", text)
	}
}

// TestOnlyValuesOfPutsAreCut: the text has all of a decision, however long. Of the value of a long put it has the
// length and the digest, and no text with another digest stands for the value.
func TestOnlyValuesOfPutsAreCut(t *testing.T) {
	base := scope.OpenPolicy(quorum.BFT)
	p := vary.Clone(base)
	author := vary.LongAuthor()
	p.Authors = append(p.Authors, author)
	text, full, _ := forms(t, "", &scope.Decision{Kind: scope.SetPolicy, Policy: &p}, func() any { return new(scope.Decision) }, &base)
	for _, prefix := range author.Prefixes {
		if !strings.Contains(text, string(prefix)) || !strings.Contains(full, string(prefix)) {
			t.Errorf("%.5s… is not shown: %s", prefix, text)
		}
	}

	value := append(bytes.Repeat([]byte("a"), 5000), 0xff)
	x := scope.Txn{Success: []scope.Op{{Kind: scope.OpPut, Key: []byte("/k"), Value: value}}, Compare: []scope.Compare{
		{Target: scope.OnValue, Relation: scope.Equal, Key: []byte("/k"), Value: bytes.Repeat([]byte("b"), 5000)},
	}}
	m := vary.Mutation(scope.Write, x)
	_, shown, err := Mutation(m.Encode(), nil)
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("value: (5001 bytes, SHA-256 %x; -o json has them all)\n", sha256.Sum256(value))
	if !strings.Contains(shown.Text(), want) || !strings.Contains(shown.Text(), strings.Repeat("b", 5000)) {
		t.Error(shown.Text())
	}
	long := make(map[string]string)
	if shown.Full.digests(long); len(long) != 1 {
		t.Errorf("%d values are cut", len(long))
	}
	if _, err := parseText(strings.Replace(shown.Text(), "SHA-256 ", "SHA-256 0", 1), long); !errors.Is(err, errText) {
		t.Errorf("another digest: %v", err)
	}
	if _, err := parseText(shown.Text(), nil); !errors.Is(err, errText) {
		t.Errorf("a digest of nothing: %v", err)
	}
}

// FuzzText: every form is read back from its text, whatever it holds.
func FuzzText(f *testing.F) {
	f.Add("name", "value", "from", true)
	f.Add("a: b", "c -> d", "\"", false)
	f.Add(" ", ":", "", true)
	f.Add("a\ufe0f", "\u3164", "b\u2800\U000e0101", true)
	f.Fuzz(func(t *testing.T, name, value, from string, diff bool) {
		x := Field{Name: name, Value: value, Diff: diff}
		if diff {
			x.From = from
		}
		all := Form{x, {Name: "group", Group: true, Form: Form{x, x}}, x}
		text := all.Text()
		back, err := parseText(text, nil)
		if err != nil || back.Text() != text || len(back) != 3 || back[0].Value != value || back[0].From != x.From || back[1].Form[1].Name != name {
			t.Fatalf("%q: %v\n%+v", text, err, back)
		}
		if strings.ContainsFunc(text, func(r rune) bool { return r != '\n' && !plain.Prints(r) }) {
			t.Fatalf("%+q does not show all of it", text)
		}
	})
}

// TestNoncesAreHexadecimal: sixteen random bytes are no text, also where they happen to be one.
func TestNoncesAreHexadecimal(t *testing.T) {
	for _, nonce := range []string{"\x00\xff\x1b[2J\x80abc", "eight is"} {
		m := vary.Mutation(scope.Write, vary.Txn())
		m.Nonce = []byte(nonce)
		text, _, _ := forms(t, "", &m, func() any { return new(scope.Mutation) }, nil)
		if want := fmt.Sprintf("nonce: %x\n", nonce); !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

// TestNumbersAreNumbersInJSON: a program reads each field with the type that it has elsewhere, and all of its digits.
func TestNumbersAreNumbersInJSON(t *testing.T) {
	mo := vary.Motion()
	mo.Height, mo.Approval.Window = math.MaxUint64, 72*time.Hour
	mo.Voters[0].Anchor, mo.Voters[0].Weight = true, 12
	_, _, data := forms(t, "", &mo, func() any { return new(scope.Motion) }, nil)
	for _, want := range []string{`"height":18446744073709551615`, `"window":"72h0m0s"`, `"anchor":true`, `"weight":12`} {
		if !strings.Contains(data, want) {
			t.Errorf("no %s in\n%s", want, data)
		}
	}
}
