package scope

import (
	"bytes"
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/aweigh/aweigh"
)

// seen is what an Impact is checked against: all keys, and how many redirects there are.
type seen struct {
	keys      map[string]KeyValue
	redirects int64
}

func (w *world) see() seen {
	w.t.Helper()
	n, err := w.state.names()
	if err != nil {
		w.t.Fatalf("reading the names: %v", err)
	}
	return seen{w.live(), n.Redirects}
}

// impactUntil is what changed from one sight to another, told from the keys alone.
func (s seen) impactUntil(after seen) Impact {
	names := func(all map[string]KeyValue) map[aweigh.UID]int {
		of := make(map[aweigh.UID]int)
		for _, v := range all {
			of[v.UID]++
		}
		return of
	}
	had, has := names(s.keys), names(after.keys)
	objects, leases := make(map[aweigh.UID]bool), make(map[int64]bool)
	i := Impact{Redirects: after.redirects - s.redirects}
	all := maps.Clone(s.keys)
	maps.Copy(all, after.keys)
	for key := range all {
		was, there := s.keys[key]
		is, stays := after.keys[key]
		if there == stays && was.ModRevision == is.ModRevision && was.Sub == is.Sub {
			continue
		}
		i.Keys++
		if there {
			objects[was.UID], leases[was.Lease] = true, true
			i.Grows -= int64(len(was.Key) + len(was.Value))
		}
		if stays {
			objects[is.UID], leases[is.Lease] = true, true
			i.Bytes += int64(len(is.Key) + len(is.Value))
			i.Grows += int64(len(is.Key) + len(is.Value))
		} else {
			i.Deleted++
		}
		if stays && had[is.UID] > 0 && (!there || was.UID != is.UID) {
			i.Bound++
		}
		if there && has[was.UID] > 0 && (!stays || was.UID != is.UID) {
			i.Unbound++
		}
	}
	for u := range has {
		if had[u] == 0 {
			i.Born++
		}
	}
	for u := range had {
		if has[u] == 0 {
			i.Ended++
		}
	}
	delete(leases, 0)
	i.Objects, i.Leases = int64(len(objects)), int64(len(leases))
	return i
}

// drawChange is a mutation of any class that changes keys or names.
func drawChange(t *rapid.T, w *world) Mutation {
	if rapid.IntRange(0, 2).Draw(t, "names") == 0 {
		n := drawNaming(t, w)
		if n.Until != 0 {
			n.Until = w.now.Add(time.Hour)
		}
		return w.naming(n)
	}
	return drawMutation(t, w, w.state.Head().Revision)
}

// TestImpactIsWhatHappens: what is said that a mutation would change is what it then changes, at once or when its
// motion is carried, and saying so changes nothing.
func TestImpactIsWhatHappens(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newAssembly(t, 4, func(p *Policy) {
			p.Approvals[0].Prefix = []byte(rapid.SampledFrom([]string{"b", "a", ""}).Draw(t, "under approval"))
		})
		w.skip = true
		for _, k := range someKeys[:rapid.IntRange(0, len(someKeys)).Draw(t, "keys")] {
			w.step(w.put(k, "of "+k))
		}
		for range rapid.IntRange(1, 12).Draw(t, "mutations") {
			m := drawChange(t, w.world)
			at := w.now.Add(time.Second)
			before, head := w.see(), w.state.Head()
			f, err := w.state.Impact(m, at)
			if err != nil {
				t.Fatalf("asking: %v", err)
			}
			again, err := w.state.Impact(m, at)
			if err != nil || !reflect.DeepEqual(f, again) || w.state.Head() != head || !reflect.DeepEqual(w.see(), before) {
				t.Fatalf("asking twice: %v, or something changed", err)
			}
			out := w.step(m).Outcomes[0]
			if out.Code != f.Outcome.Code || out.Reason != f.Outcome.Reason || out.Revision != f.Outcome.Revision {
				t.Fatalf("said %+v, and it is %+v", f.Outcome, out)
			}
			if (f.Motion != nil) != (out.Code == Pending) || (f.Impact != nil) != (out.Code == Pending || out.Code == Applied) {
				t.Fatalf("%s: said motion %v, impact %v", out.Code, f.Motion, f.Impact)
			}
			if out.Code == Pending {
				mo, _, err := w.state.Motion(out.Mutation)
				if err != nil || !reflect.DeepEqual(mo.Impact, f.Impact) {
					t.Fatalf("the motion says %+v, it was said %+v", mo.Impact, f.Impact)
				}
				if now := w.see(); !reflect.DeepEqual(now, before) {
					t.Fatalf("a motion changed something")
				}
				w.cast(w.approve(out.Mutation, 4))
				if w.fate(out.Mutation) != "carried" {
					t.Fatalf("its motion is %s", w.fate(out.Mutation))
				}
			}
			if f.Impact == nil {
				continue
			}
			after := w.see()
			got, want := *f.Impact, before.impactUntil(after)
			got.Touched = nil
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("said\n%+v\nhappened\n%+v", got, want)
			}
			checkTouched(t, f.Impact, before, after)
		}
	})
}

// checkTouched compares the keys that an impact lists with what they held and hold.
func checkTouched(t *rapid.T, i *Impact, before, after seen) {
	if len(i.Touched) != min(int(i.Keys), maxTouched) {
		t.Fatalf("%d of %d keys are listed", len(i.Touched), i.Keys)
	}
	if !slices.IsSortedFunc(i.Touched, func(a, b Touched) int { return bytes.Compare(a.Key, b.Key) }) {
		t.Fatalf("keys out of order")
	}
	for _, k := range i.Touched {
		was, is := before.keys[string(k.Key)], after.keys[string(k.Key)]
		want := Touched{
			Key: k.Key, Class: k.Class, Object: was.UID, Found: was.ModRevision, Was: int64(len(was.Value)), Size: int64(len(is.Value)), Lease: is.Lease,
		}
		if !reflect.DeepEqual(k, want) || is.ModRevision == was.ModRevision && is.Sub == was.Sub {
			t.Fatalf("touched %+v, want %+v", k, want)
		}
	}
}

// TestImpactIsBounded: it counts all keys and lists some, and has one encoding.
func TestImpactIsBounded(t *testing.T) {
	w := newWorld(t)
	for n := range 40 {
		w.one(w.put("/k/"+string(rune('a'+n)), "v"))
	}
	f, err := w.state.Impact(w.ops(del("/k/", "/k0")), w.now)
	if err != nil || f.Impact == nil || f.Impact.Deleted != 40 || len(f.Impact.Touched) != maxTouched || f.Impact.Ended != 40 {
		t.Fatalf("%+v, %v", f.Impact, err)
	}
	raw := f.Impact.Encode()
	if again, err := DecodeImpact(raw); err != nil || !reflect.DeepEqual(again, f.Impact) || again.Hash() != f.Impact.Hash() {
		t.Errorf("%v: %+v", err, again)
	}
	if _, err := DecodeImpact(raw[:len(raw)-1]); err == nil {
		t.Error("a part of it is taken for one")
	}
	if want := "40 keys deleted, 40 objects retired"; f.Impact.String() != want {
		t.Errorf("%s", f.Impact)
	}
}
