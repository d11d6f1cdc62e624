//go:build !noverbs

package action_test

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/aweigh/aweigh/action"
)

func facts() *action.Facts {
	return &action.Facts{
		Verb: "pay", Now: 1_700_000_000,
		Caller: action.Caller{ID: "ab12", Anchor: "treasury", Weight: 250},
		Scope:  action.Scope{Prefix: "/user/", Mode: "bft", Epoch: 3, Height: 99},
		Object: action.Object{Key: "/user/elizabeth", Exists: true, UID: "l6d3en7r", Version: 4, Value: []byte("10")},
	}
}

func TestPredicatesSeeTheFacts(t *testing.T) {
	for when, want := range map[string]bool{
		"":                                  true,
		"true":                              true,
		"verb == 'pay'":                     true,
		"now < 1700000000":                  false,
		"now >= 1700000000 && now % 2 == 0": true,
		"caller.id == 'ab12'":               true,
		"caller.anchor == 'treasury'":       true,
		"caller.anchor in ['a', 'b']":       false,
		"caller.weight > 250":               false,
		"scope.prefix == '/user/' && scope.mode == 'bft'": true,
		"scope.epoch == 3 && scope.height == 99":          true,
		"object.exists && object.version == 4":            true,
		"object.key.startsWith('/user/e')":                true,
		"object.uid == ''":                                false,
		"object.value == b'10'":                           true,
		"int(string(object.value)) + 1 == 11":             true,
		"['a', 'treasury'].exists(x, x == caller.anchor)": true,
		"size(object.key) > 3 ? verb == 'pay' : false":    true,
		"1 / (object.version - 4) == 0":                   false, // cannot be worked out
		"object.exists || 1 / 0 == 0":                     true,
	} {
		p, err := action.Compile(when)
		if err != nil {
			t.Errorf("%s: %v", when, err)
			continue
		}
		if got, err := p.Holds(facts()); got != want {
			t.Errorf("%s: %v, %v", when, got, err)
		}
	}
}

// TestNothingThatNodesCouldWorkOutDifferently: floating-point numbers, unordered
// values, the environment and long computations are refused in predicates, and the
// error has the place.
func TestNothingThatNodesCouldWorkOutDifferently(t *testing.T) {
	for when, want := range map[string]string{
		"1.5 > 1.0":                                  "line 1, column 1: predicates have no values of type double",
		"now > 1 &&\n double(now) > 0.5":             "line 2",
		"{'a': 1}.exists(k, k == 'a')":               "predicates have no maps",
		"dyn(now) == 1":                              "predicates do not know dyn",
		"[1, 'a'].exists(x, x == 1)":                 "line 1, column 1: predicates do not know this of int and string",
		"timestamp(now).getHours('Asia/Tokyo') == 1": "predicates do not know",
		"duration('1s') == duration('1s')":           "predicates do not know duration",
		"object.key.matches('a+')":                   "predicates do not know matches",
		"type(now) == int":                           "predicates do not know type",
		"null == null":                               "predicates have no values of type null_type",
		"caller.name == 'a'":                         "line 1, column 1: predicates do not know caller.name",
		"now +":                                      "line 1",
		"now":                                        "it gives int, and a predicate gives true or false",
		"random() == 1":                              "line 1, column 7: predicates do not know random",
		"[1,2,3,4,5,6,7,8,9].all(a, [1,2,3,4,5,6,7,8,9].all(b, [1,2,3,4,5,6,7,8,9].all(c, a+b+c > now)))": "steps",
		"object.key.contains(object.key) && string(object.value).contains(string(object.value))":          "steps",
		strings.Repeat("(", 200) + "true" + strings.Repeat(")", 200):                                      "line",
	} {
		if _, err := action.Compile(when); !errors.Is(err, action.ErrPredicate) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", when, err, want)
		}
	}
}

// TestNoPredicateReachesItsBound: the cost that is allowed is the cost that is
// possible, so that a count when it is asked never decides anything.
func TestNoPredicateReachesItsBound(t *testing.T) {
	f := facts()
	f.Object.Key = strings.Repeat("k", 1024)
	f.Object.Value = []byte(strings.Repeat("v", action.MaxValue))
	for _, when := range []string{
		"object.value == object.value", "string(object.value).startsWith(object.key)", "object.key + object.key != verb",
		"[1,2,3,4,5,6,7,8,9].all(a, [1,2,3,4,5,6,7].all(b, a + b < now))",
	} {
		p, err := action.Compile(when)
		if err != nil {
			t.Fatalf("%s: %v", when, err)
		}
		if _, err := p.Holds(f); err != nil {
			t.Errorf("%s, of at most %d steps: %v", when, p.Cost(), err)
		}
	}
	f.Object.Value = append(f.Object.Value, 'v')
	p, _ := action.Compile("size(object.value) > 0")
	if ok, err := p.Holds(f); ok || err == nil {
		t.Error("a value beyond the bound was looked at")
	}
	if p, _ = action.Compile("object.exists"); p == nil {
		t.Fatal("no predicate")
	} else if ok, err := p.Holds(f); !ok {
		t.Errorf("a predicate that does not look at the value minds its size: %v", err)
	}
}

func FuzzCompile(f *testing.F) {
	for _, s := range []string{"now > 1", "caller.anchor in ['a']", "object.value == b'\\x00'", "1.0", "[[1]].all(x, x.all(y, y > 0))", "{", "'\xff'", "[1,2].map(x, x > 1, [x, x] + [1])[0] == [2]", "[[1]].filter(l, size(l) in l) != [[2]]"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, when string) {
		if len(when) > action.MaxWhen || !utf8.ValidString(when) {
			return
		}
		p, err := action.Compile(when)
		if err != nil {
			if !errors.Is(err, action.ErrPredicate) {
				t.Fatalf("%q: %v", when, err)
			}
			return
		}
		first, err1 := p.Holds(facts())
		again, err2 := p.Holds(facts())
		if first != again || (err1 == nil) != (err2 == nil) {
			t.Fatalf("%q: %v, then %v", when, first, again)
		}
		if when != "" && p.Cost() > action.MaxCost {
			t.Fatalf("%q may take %d steps", when, p.Cost())
		}
		if err1 != nil && strings.Contains(err1.Error(), "cost limit") {
			t.Fatalf("%q reaches the library's bound: %v", when, err1)
		}
	})
}
