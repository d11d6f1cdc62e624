package referral

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
)

// inquiryOf is an inquiry of anchors of these weights.
func inquiryOf(t *testing.T, kind uint8, weights ...uint64) *Inquiry {
	t.Helper()
	e := epochOf(t, len(weights))
	var shares []quorum.Share
	for i, a := range e.Roster.Anchors {
		shares = append(shares, quorum.Share{Anchor: a.Key.ID(), Weight: weights[i]})
	}
	var err error
	if e.Roster.Weights, err = quorum.NewWeights(shares...); err != nil {
		t.Fatal(err)
	}
	f := &Scope{epoch: e, newest: 100, seen: map[aweigh.AnchorID]Conduct{}, cache: map[aweigh.Hash]cached{}}
	return f.Inquire(Question{Kind: kind, Newest: true}, 1)
}

func saying(body string, x *Query) Answer {
	a := Answer{Epoch: 3, Revision: 100, Body: bytes.Repeat([]byte(body), 100)}
	a.Shorten(&x.Ask)
	return a
}

// TestOneAnswerIsWhole: of the anchors that are asked at first, one gives its answer whole and the others a hash of it.
// A proof, and the outcome of a write, are always whole.
func TestOneAnswerIsWhole(t *testing.T) {
	for _, kind := range []uint8{AskLook, AskResolve, AskHistory, AskJudge, AskOutcome, AskEvents, AskSubmit, AskProve, AskReferrals, AskProveRange} {
		q := inquiryOf(t, kind, 1, 1, 1, 1, 1, 1, 1)
		asked, brief, bytes := 0, 0, 0
		for x, ok := q.Next(); ok; x, ok = q.Next() {
			a := saying("truth", &x)
			if asked++; x.Ask.Brief {
				brief++
			}
			bytes += len(canon.Encode(a))
			q.Hear(x, 1, a, nil)
		}
		a, err, ended := q.Result()
		if kind == AskProve || kind == AskReferrals || kind == AskProveRange {
			if brief > 0 || asked != 1 {
				t.Errorf("kind %d: %d of %d answers are brief", kind, brief, asked)
			}
			continue
		}
		if !ended || err != nil || len(a.Body) != 500 || len(a.Digest) > 0 {
			t.Errorf("kind %d: %+v, %v, ended: %t", kind, a, err, ended)
		}
		switch {
		case kind == AskSubmit && brief > 0:
			t.Errorf("%d receipts are brief", brief)
		case kind != AskSubmit && (asked != 3 || brief != 2 || bytes > 750):
			t.Errorf("kind %d: %d of %d answers are brief, with %d bytes", kind, brief, asked, bytes)
		}
	}
}

// TestBriefAnswersNeedABody: an anchor that gives a false answer, none, or one of no known form does not keep the
// others from a true one.
func TestBriefAnswersNeedABody(t *testing.T) {
	for name, c := range map[string]struct { // order-free
		weights []uint64
		say     func(at int, x *Query) (Answer, error) // at: how many were asked before
		asked   int
	}{
		"the first lies": {[]uint64{1, 1, 1, 1}, func(at int, x *Query) (Answer, error) {
			if at == 0 {
				return saying("lie", x), nil
			}
			return saying("truth", x), nil
		}, 3},
		"the first is away": {[]uint64{1, 1, 1, 1}, func(at int, x *Query) (Answer, error) {
			if at == 0 {
				return Answer{}, errors.New("away")
			}
			return saying("truth", x), nil
		}, 3},
		"the first is brief unasked": {[]uint64{1, 1, 1, 1}, func(at int, x *Query) (Answer, error) {
			x.Ask.Brief = x.Ask.Brief || at == 0
			return saying("truth", x), nil
		}, 3},
		"a hash of no known form": {[]uint64{1, 1, 1, 1}, func(at int, x *Query) (Answer, error) {
			a := saying("truth", x)
			if at == 1 {
				a.Digest = a.Digest[:31]
			}
			return a, nil
		}, 3},
		"a hash and a body": {[]uint64{1, 1, 1, 1}, func(at int, x *Query) (Answer, error) {
			a := saying("truth", x)
			if at == 1 {
				a.Body = []byte("truth")
			}
			return a, nil
		}, 3},
	} {
		q := inquiryOf(t, AskLook, c.weights...)
		asked := 0
		for x, ok := q.Next(); ok; x, ok = q.Next() {
			a, err := c.say(asked, &x)
			asked++
			q.Hear(x, 1, a, err)
		}
		a, err, ended := q.Result()
		if !ended || err != nil || !bytes.HasPrefix(a.Body, []byte("truth")) || asked != c.asked {
			t.Errorf("%s: %q, %v after %d questions of %d, ended: %t", name, a.Body, err, asked, c.asked, ended)
		}
	}
}

// TestBriefWeightIsAskedAgain: the only anchor that answers has more weight than may lie, and gave a hash.
func TestBriefWeightIsAskedAgain(t *testing.T) {
	q := inquiryOf(t, AskLook, 5, 1, 1, 1, 1, 1, 1, 1, 1, 1)
	i := slices.IndexFunc(q.order, func(p Preference) bool { return p.Anchor.Name == "a" })
	q.order[i], q.order[1] = q.order[1], q.order[i]
	q.most, q.brief = 2, 2
	var brief, whole int
	for x, ok := q.Next(); ok; x, ok = q.Next() {
		switch {
		case x.Anchor.Name != "a":
			q.Hear(x, 1, Answer{}, errors.New("away"))
			continue
		case x.Ask.Brief:
			brief++
		default:
			whole++
		}
		q.Hear(x, 1, saying("truth", &x), nil)
	}
	if a, err, ended := q.Result(); !ended || err != nil || len(a.Body) != 500 || brief != 1 || whole != 1 {
		t.Errorf("%q, %v, ended: %t, after %d brief answers and %d whole ones", a.Body, err, ended, brief, whole)
	}
}

// TestLiarsHaveNoBodyOfTheirOwn: whatever anchors of at most the weight that may lie say, whole or in brief, in any
// order, an answer that counts is the one of the others. If these answer, there is one.
func TestLiarsHaveNoBodyOfTheirOwn(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		weights := rapid.SliceOfN(rapid.Uint64Range(1, 5), 4, 9).Draw(r, "weights")
		q := inquiryOf(t, AskLook, weights...)
		lies, budget := map[string]bool{}, q.all.budget
		for i, w := range weights {
			if w <= budget && rapid.Bool().Draw(r, "lies") {
				lies[string(rune('a'+i))], budget = true, budget-w
			}
		}
		var under []Query
		for asked := 0; ; {
			for x, ok := q.Next(); ok; x, ok = q.Next() {
				under = append(under, x)
				if asked++; asked > 100 {
					r.Fatal("it asks for ever")
				}
			}
			if _, _, ended := q.Result(); ended {
				break
			}
			if len(under) == 0 {
				q.Hedge()
				continue
			}
			i := rapid.IntRange(0, len(under)-1).Draw(r, "next")
			x := under[i]
			under = append(under[:i], under[i+1:]...)
			a, err := saying("truth", &x), error(nil)
			if lies[x.Anchor.Name] {
				switch rapid.IntRange(0, 5).Draw(r, "lie") {
				case 0:
					a = saying("lie", &x)
				case 1:
					a, err = Answer{}, errors.New("away")
				case 2: // the hash alone
					x.Ask.Brief = true
					a.Body = bytes.Repeat([]byte("truth"), 100)
					a.Shorten(&x.Ask)
				case 3: // another body for the hash
					a.Body = []byte("lie")
				case 4:
					a.Digest = []byte("short")
				case 5:
					a.Failure = scope.Reason(scope.ErrTooMuch)
				}
			}
			q.Hear(x, 1, a, err)
		}
		if a, err, _ := q.Result(); err != nil || !bytes.HasPrefix(a.Body, []byte("truth")) || a.Failure != "" {
			r.Fatalf("%q, %q, %v", a.Body, a.Failure, err)
		}
	})
}
