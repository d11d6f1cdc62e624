package scope

import (
	"errors"
	"strings"
	"testing"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/lineage"
)

// merging is a merge of what one key holds into another, on the condition that both are as they are.
func (w *world) merging(from, to, value string) Txn {
	w.t.Helper()
	t := Txn{Success: []Op{{Kind: OpMerge, Key: []byte(from)}, put(to, value)}}
	for _, key := range []string{from, to} {
		v, ok, err := w.state.newest([]byte(key))
		if err != nil || !ok {
			w.t.Fatalf("%q: %v, %v", key, ok, err)
		}
		t.Compare = append(t.Compare, Compare{Target: OnMod, Relation: Equal, Key: []byte(key), Number: v.ModRevision})
	}
	return t
}

// TestP52MergesNameBothParents: the entry of a merge names the version before as the one parent, and the version that
// was merged as the other.
func TestP52MergesNameBothParents(t *testing.T) {
	w := newWorld(t)
	w.one(w.put("/a", "1"))
	w.one(w.fork("/a", "/b \"é\x00"))
	w.one(w.put("/b \"é\x00", "2"))
	from, _, err := w.state.newest([]byte("/b \"é\x00"))
	to, _, toErr := w.state.newest([]byte("/a"))
	if errors.Join(err, toErr) != nil {
		t.Fatal(err, toErr)
	}
	res := w.step(w.txn(w.merging("/b \"é\x00", "/a", "3")), w.put("/c", "4"))
	if out := res.Outcomes[0]; out.Code != Applied || !out.Succeeded || len(out.Responses) != 2 || out.Responses[0].UID != from.UID || out.Responses[1].UID != to.UID {
		t.Fatalf("%+v", out)
	}
	e := w.newestEntry("/a")
	p, ok := ParseMerged(e.Reason)
	if !ok || p.Object != from.UID || string(p.Key) != string(from.Key) || p.Revision != from.ModRevision || p.Sub != from.Sub {
		t.Fatalf("the entry says %q: %+v", e.Reason, p)
	}
	if e.Class != lineage.Update || e.Prior != to.Digest() || e.Object != to.UID {
		t.Fatalf("%+v", e)
	}
	if e := w.newestEntry("/c"); e.Reason != "" {
		t.Fatalf("a put after a merge says %q", e.Reason)
	}
}

// newestEntry is that of the newest version of a key.
func (w *world) newestEntry(key string) (newest lineage.Entry) {
	w.t.Helper()
	v, _, err := w.state.newest([]byte(key))
	if err == nil {
		err = w.state.Lineage().Chain(v.Entry+1, func(_ int64, e lineage.Entry) bool {
			newest = e
			return false
		})
	}
	if err != nil {
		w.t.Fatalf("reading: %v", err)
	}
	return newest
}

// TestP52MergesNeedBothVersions: a merge of versions that are not the newest any more changes nothing.
func TestP52MergesNeedBothVersions(t *testing.T) {
	for _, moved := range []string{"/a", "/b"} {
		w := newWorld(t)
		w.one(w.put("/a", "1"))
		w.one(w.put("/b", "2"))
		m := w.txn(w.merging("/b", "/a", "3"))
		w.one(w.put(moved, "x"))
		rev := w.state.Head().Revision
		if out := w.one(m); out.Succeeded || w.state.Head().Revision != rev {
			t.Errorf("merged although %s was changed: %+v", moved, out)
		}
	}
}

// TestP52MergesHaveOneForm: of two operations, with conditions on both keys.
func TestP52MergesHaveOneForm(t *testing.T) {
	pin := func(key string) Compare {
		return Compare{Target: OnMod, Relation: Equal, Key: []byte(key), Number: 3}
	}
	merge, lim := Op{Kind: OpMerge, Key: []byte("/b")}, MostLimits()
	good := Txn{Compare: []Compare{pin("/a"), pin("/b")}, Success: []Op{merge, put("/a", "1")}}
	if err := good.Check(lim); err != nil {
		t.Fatal(err)
	}
	for name, t2 := range map[string]Txn{ // order-free: each is checked alone
		"no condition on the source": {Compare: []Compare{pin("/a")}, Success: good.Success},
		"no condition on the target": {Compare: []Compare{pin("/b")}, Success: good.Success},
		"of what is not there":       {Compare: []Compare{pin("/a"), {Target: OnMod, Relation: Equal, Key: []byte("/b")}}, Success: good.Success},
		"greater":                    {Compare: []Compare{pin("/a"), {Target: OnMod, Relation: Greater, Key: []byte("/b"), Number: 1}}, Success: good.Success},
		"no put":                     {Compare: good.Compare, Success: []Op{merge}},
		"put first":                  {Compare: good.Compare, Success: []Op{put("/a", "1"), merge}},
		"two puts":                   {Compare: good.Compare, Success: []Op{merge, put("/a", "1"), put("/c", "1")}},
		"a deletion":                 {Compare: good.Compare, Success: []Op{merge, del("/a", "")}},
		"the value that is there":    {Compare: good.Compare, Success: []Op{merge, {Kind: OpPut, Key: []byte("/a"), IgnoreValue: true}}},
		"with itself":                {Compare: []Compare{pin("/b")}, Success: []Op{merge, put("/b", "1")}},
		"a range":                    {Compare: good.Compare, Success: []Op{{Kind: OpMerge, Key: []byte("/b"), End: []byte("/c")}, put("/a", "1")}},
		"with a value":               {Compare: good.Compare, Success: []Op{{Kind: OpMerge, Key: []byte("/b"), Value: []byte("1")}, put("/a", "1")}},
		"otherwise":                  {Compare: good.Compare, Failure: good.Success},
		"within":                     {Success: []Op{{Kind: OpTxn, Txn: &good}}},
	} {
		if t2.Check(lim) == nil {
			t.Errorf("%s: taken", name)
		}
	}
}

// TestP52MergesNeedTheirSource: a merge takes the right to name what it merges, or to read it, as a fork does.
func TestP52MergesNeedTheirSource(t *testing.T) {
	for _, c := range []struct {
		name   string
		verbs  []string // of the source
		denied bool
	}{
		{"none", nil, true},
		{"another one", []string{VerbPut}, true},
		{"to name it", []string{VerbAlias}, false},
		{"to read it", []string{VerbRead}, false},
	} {
		entries := []Author{alice(t, []string{VerbPut}, "/a/"), author(t, "root", 97, nil)}
		if c.verbs != nil {
			entries = []Author{entries[0], author(t, "alice2", 99, c.verbs, "/s/"), entries[1]}
		}
		w := grantTest{withAuthors(t, nil, entries...)}
		w.does(97, w.put("/s/x", "secret"))
		w.does(97, w.put("/a/y", "1"))
		out := w.does(99, w.txn(w.merging("/s/x", "/a/y", "2")))
		if denied := errors.Is(Failure(out.Reason), ErrDenied); denied != c.denied || !denied && out.Code != Applied {
			t.Errorf("%s: %s: %q", c.name, out.Code, out.Reason)
		}
	}
}

// TestP52MergesReadTheirSource: who may not read a key does not learn of it by a merge.
func TestP52MergesReadTheirSource(t *testing.T) {
	m := Txn{Success: []Op{{Kind: OpMerge, Key: []byte("/b")}, put("/a", "1")}}
	var seen []string
	(&CheckedMutation{Txn: &m}).Reads(func(key, _ []byte) bool { seen = append(seen, string(key)); return true })
	if len(seen) != 1 || seen[0] != "/b" {
		t.Errorf("reads %q", seen)
	}
}

// TestP52MergesWaitForApproval: as a put does, on the condition that neither version changes.
func TestP52MergesWaitForApproval(t *testing.T) {
	for _, moved := range []string{"", "/config/a", "/draft"} {
		w := newAssembly(t, 4, func(p *Policy) { p.Approvals[0].Prefix = []byte("/config/a") })
		first := w.propose(w.put("/config/a", "1"))
		w.cast(w.approve(first, 4))
		w.one(w.put("/draft", "2"))
		id := w.propose(w.txn(w.merging("/draft", "/config/a", "3")))
		mo, _, err := w.state.Motion(id)
		if err != nil {
			t.Fatal(err)
		}
		if s := mo.Subject(); !strings.Contains(s, `merge "/draft" into "/config/a"`) {
			t.Errorf("the motion is called %q", s)
		}
		want := "3"
		switch moved {
		case "/draft":
			w.one(w.put("/draft", "4"))
			want = "1"
		case "/config/a":
			w.cast(w.approve(w.propose(w.put("/config/a", "5")), 4))
			want = "5"
		}
		w.cast(w.approve(id, 4))
		v, _, err := w.state.newest([]byte("/config/a"))
		if err != nil || string(v.Value) != want {
			t.Errorf("after a change of %q it holds %q, and must hold %q (%v)", moved, v.Value, want, err)
		}
		if _, ok := ParseMerged(w.newestEntry("/config/a").Reason); ok != (moved == "") {
			t.Errorf("after a change of %q the entry says %q", moved, w.newestEntry("/config/a").Reason)
		}
	}
}

// TestReasonsOfMergesAreRead: ParseMerged takes what is written, and nothing else.
func TestReasonsOfMergesAreRead(t *testing.T) {
	p := Parent{Object: aweigh.NewUID(aweigh.Sum([]byte("x")), 1), Key: []byte("/\xff \"\n"), Revision: 1 << 40, Sub: 7}
	got, ok := ParseMerged(p.merged())
	if !ok || got.Object != p.Object || string(got.Key) != string(p.Key) || got.Revision != p.Revision || got.Sub != p.Sub {
		t.Errorf("%q is read as %+v, %v", p.merged(), got, ok)
	}
	for _, bad := range []string{"", "merged", "merged x 1.0 \"/a\"", strings.TrimSuffix(p.merged(), `"`), "lease 1 ended"} {
		if _, ok := ParseMerged(bad); ok {
			t.Errorf("%q is taken", bad)
		}
	}
}
