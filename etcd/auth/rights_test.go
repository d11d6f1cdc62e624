package auth

import (
	"bytes"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/aweigh/aweigh/scope"
)

// TestRightsAreThoseOfKeys: a user may do with a range what it may do with each of its keys.
func TestRightsAreThoseOfKeys(t *testing.T) {
	var keys [][]byte // in order, and any range's ends are among them
	for a := byte('a'); a <= 'd'; a++ {
		keys = append(keys, []byte{a}, []byte{a, 0}, []byte{a, 'x'})
	}
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string) (key, end []byte) {
			key = rapid.SampledFrom(keys).Draw(t, name)
			switch rapid.IntRange(0, 3).Draw(t, name+" form") {
			case 0:
				return key, nil
			case 1:
				return key, []byte{0}
			}
			return key, rapid.SampledFrom(keys).Draw(t, name+" end")
		}
		a := &scope.Access{Users: []scope.User{{Name: "u", Roles: []string{"r"}}}, Roles: []scope.Role{{Name: "r"}}}
		for i := range rapid.IntRange(0, 5).Draw(t, "grants") {
			key, end := draw(fmt.Sprint("grant ", i))
			a.Roles[0].Grant = append(a.Roles[0].Grant, scope.Permission{Read: true, Key: key, End: end})
		}
		r := rightsOf(a, "u")
		key, end := draw("asked")
		if len(end) > 0 && !scope.ToEnd(end) && bytes.Compare(key, end) >= 0 {
			return // of no key
		}
		all := append(keys[:len(keys):len(keys)], []byte("zz")) // beyond all ends
		want := true
		for _, k := range all {
			if !scope.Within(k, key, end) {
				continue
			}
			may := false
			for _, g := range a.Roles[0].Grant {
				may = may || scope.Within(k, g.Key, g.End)
			}
			want = want && may
		}
		// A point takes no keys that sort right behind it, which these do not show.
		if got := r.MayRead(key, end) == nil; got && !want {
			t.Fatalf("[%q, %q) may be read under %+v", key, end, a.Roles[0].Grant)
		} else if !got && want && len(end) == 0 {
			t.Fatalf("%q may not be read under %+v", key, a.Roles[0].Grant)
		}
		if r.MayWrite(key, end) == nil {
			t.Fatal("what may be read may be written")
		}
	})
}
