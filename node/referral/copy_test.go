package referral

import (
	"errors"
	"maps"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/aweigh/aweigh/lineage"
	"github.com/aweigh/aweigh/scope"
)

// TestCopiesAreWhatTheyCopy: a copy that was filled and follows changes, in answers of any size, gives what a range of
// the keys themselves gives.
func TestCopiesAreWhatTheyCopy(t *testing.T) {
	names := []string{"/a", "/b", "/b/", "/b/1", "/b/2", "/b/2/x", "/b/3", "/c"}
	rapid.Check(t, func(t *rapid.T) {
		keys, all := make(map[string]scope.KeyValue), []Event(nil)
		change := func() {
			at := int64(len(all) + 1)
			key := rapid.SampledFrom(names).Draw(t, "key")
			kv := scope.KeyValue{Key: []byte(key), ModRevision: at}
			old, ok := keys[key]
			if ok && rapid.Bool().Draw(t, "deletes") {
				delete(keys, key)
				all = append(all, Event{Class: lineage.Delete, Kv: kv})
				return
			}
			kv.CreateRevision, kv.Version, kv.Value = at, 1, rapid.SliceOfN(rapid.Byte(), 0, 3).Draw(t, "value")
			class := lineage.Insert
			if ok {
				kv.CreateRevision, kv.Version, class = old.CreateRevision, old.Version+1, lineage.Update
			}
			keys[key] = kv
			all = append(all, Event{Class: class, Kv: kv})
		}
		held := func(key, end []byte) (kvs []scope.KeyValue) {
			for _, name := range slices.Sorted(maps.Keys(keys)) {
				if scope.Within([]byte(name), key, end) {
					kvs = append(kvs, keys[name])
				}
			}
			return kvs
		}
		ranges := [][2]string{{"/b/", "/b0"}, {"/b/1", ""}, {"/a", "\x00"}, {"/b/1", "/b/3"}, {"/b/2", "/b0"}, {"/b", "/d"}}
		at := ranges[rapid.IntRange(0, 2).Draw(t, "copied")]
		for range rapid.IntRange(0, 10).Draw(t, "changes before") {
			change()
		}
		c := NewCopy([]byte(at[0]), []byte(at[1]))
		c.Fill(held(c.key, c.end), int64(len(all)))
		for range rapid.IntRange(1, 4).Draw(t, "rounds") {
			for range rapid.IntRange(0, 10).Draw(t, "changes") {
				change()
			}
			for done := false; !done; {
				x := c.Watch()
				var got Events
				most := rapid.IntRange(1, 4).Draw(t, "changes in an answer")
				for _, e := range all[x.From-1:] {
					if len(got.All) == most {
						got.Next = e.Kv.ModRevision
						break
					}
					if scope.Within(e.Kv.Key, x.Key, x.End) {
						got.All = append(got.All, e)
					}
				}
				var err error
				if done, err = c.Follow(&got, int64(len(all))); err != nil {
					t.Fatal(err)
				}
			}
			for _, x := range ranges {
				key, end := []byte(x[0]), []byte(x[1])
				r := scope.Range{
					Limit: rapid.Int64Range(0, 3).Draw(t, "limit"), Sort: scope.ByKey, KeysOnly: rapid.Bool().Draw(t, "keys only"),
					CountOnly: rapid.Bool().Draw(t, "count only"), MinMod: rapid.Int64Range(0, 5).Draw(t, "least mod"),
				}
				if rapid.Bool().Draw(t, "descending") {
					r.Order = scope.Descending
				}
				if !c.Covers(key, end) {
					continue
				}
				want := r.Of(held(key, end))
				want.Revision = int64(len(all))
				if is := c.Range(key, end, &r); !reflect.DeepEqual(is, want) {
					t.Fatalf("[%q, %q) is\n%+v, not\n%+v", key, end, is, want)
				}
			}
			bytes := int64(0)
			for _, kv := range held(c.key, c.end) {
				bytes += sizeOf(&kv)
			}
			if c.Bytes() != bytes {
				t.Fatalf("it counts %d bytes, not %d", c.Bytes(), bytes)
			}
		}
	})
}

// TestCopiesCoverRanges: a copy knows which ranges lie in it.
func TestCopiesCoverRanges(t *testing.T) {
	for _, x := range []struct {
		of, asked [2]string
		covers    bool
	}{
		{[2]string{"/b/", "/b0"}, [2]string{"/b/", "/b0"}, true},
		{[2]string{"/b/", "/b0"}, [2]string{"/b/1", ""}, true},
		{[2]string{"/b/", "/b0"}, [2]string{"/b0", ""}, false},
		{[2]string{"/b/", "/b0"}, [2]string{"/b/1", "/b1"}, false},
		{[2]string{"/b/", "/b0"}, [2]string{"/a", "/b/1"}, false},
		{[2]string{"/b/", "/b0"}, [2]string{"/b/", "\x00"}, false},
		{[2]string{"/b/", "\x00"}, [2]string{"/b/", "\x00"}, true},
		{[2]string{"/b/", "\x00"}, [2]string{"/b/1", "/z"}, true},
		{[2]string{"/b/", "\x00"}, [2]string{"/a", "\x00"}, false},
		{[2]string{"/b/1", ""}, [2]string{"/b/1", ""}, true},
		{[2]string{"/b/1", ""}, [2]string{"/b/1", "/b/2"}, false},
		{[2]string{"/b/1", ""}, [2]string{"/b/2", ""}, false},
	} {
		c := NewCopy([]byte(x.of[0]), []byte(x.of[1]))
		if c.Covers([]byte(x.asked[0]), []byte(x.asked[1])) != x.covers {
			t.Errorf("a copy of %q covers %q: %t", x.of, x.asked, !x.covers)
		}
	}
}

// TestCopiesThatCannotFollow: a copy ends where the changes since were compacted, as after a homecoming, or where the
// scope has delegated some of the keys.
func TestCopiesThatCannotFollow(t *testing.T) {
	c := NewCopy([]byte("/b/"), []byte("/b0"))
	c.Fill(nil, 7)
	if _, err := c.Follow(&Events{Given: 1}, 8); !errors.Is(err, ErrCopyParts) {
		t.Error(err)
	}
	if _, err := c.Follow(&Events{Compacted: 9}, 10); !errors.Is(err, ErrCopyGap) {
		t.Error(err)
	}
	if c.Revision() != 7 {
		t.Errorf("it shows revision %d", c.Revision())
	}
	if done, err := c.Follow(new(Events), 6); !done || err != nil || c.Revision() != 7 {
		t.Errorf("anchors that are behind move it to revision %d: %v", c.Revision(), err)
	}
}
