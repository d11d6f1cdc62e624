package scope

import (
	"strings"
	"testing"
	"time"

	"github.com/aweigh/aweigh"
)

// guarded is a scope in which /a and what is below /secrets/ take approval of three anchors of four. /a has the further
// alias /free, and /other is another object. It returns the revision as of which they stand there.
func guarded(t *testing.T) (w *assembly, rev int64) {
	w = newAssembly(t, 4)
	w.one(w.put("/a", "1")) // before anything asks for approval
	w.one(w.bind("/a", "/free"))
	rev = w.state.Head().Revision
	p := w.g.Policy
	p.Approvals = []Approval{{Matter: Changes, Prefix: []byte("/a"), Num: 3, Den: 4, Window: time.Hour}, {Matter: Changes, Prefix: []byte("/secrets/"), Num: 3, Den: 4, Window: time.Hour}}
	client := w.author
	w.author = w.keys[0]
	w.cast(w.approve(w.step(w.mutation(Govern, Decision{Kind: SetPolicy, Policy: &p})).Outcomes[0].Mutation, 4)[1:])
	w.author = client
	w.turn()
	w.one(w.put("/other", "1"))
	return w, rev
}

// renamings are changes of names that take approval, with what is to be seen of them.
func (w *assembly) renamings(rev int64) map[string]renaming {
	u := w.uid("/a")
	return map[string]renaming{
		"bind below it":           {w.bind("/other", "/secrets/b"), "/other", "/secrets/b=1 /other=1"},
		"bind from it":            {w.bind("/a", "/more"), "/a", "/more=1 /a=1"},
		"move there":              {w.move("/other", "/secrets/b", 0), "/other", "/secrets/b=1 /other="},
		"move away":               {w.move("/a", "/b", w.now.Add(time.Hour)), "/a", "/b=1 /a= /free=1"},
		"unbind there":            {w.naming(Naming{Kind: Unbind, Object: u, Key: []byte("/a")}), "/a", "/a= /free=1"},
		"unbind there, whichever": {w.naming(Naming{Kind: Unbind, Key: []byte("/a")}), "/a", "/a= /free=1"},
		"fork there":              {w.naming(Naming{Kind: Fork, Object: u, To: []byte("/secrets/c"), From: []byte("/a"), Revision: rev - 1}), "/secrets/c", "/secrets/c=1"},
		"roll back there":         {w.naming(Naming{Kind: Rollback, Object: u, Key: []byte("/a"), From: []byte("/a"), Revision: rev - 1}), "/a", "/a=1 /free=1"},
		"roll back elsewhere":     {w.naming(Naming{Kind: Rollback, Object: u, Key: []byte("/free"), From: []byte("/a"), Revision: rev - 1}), "/free", "/a=1 /free=1"},
	}
}

type renaming struct {
	m       Mutation
	touches string // a key that it changes, or names anew
	leaves  string // keys and values
}

func (w *assembly) holds(name, keys string) {
	w.t.Helper()
	for pair := range strings.FieldsSeq(keys) {
		if key, value, _ := strings.Cut(pair, "="); w.value(key) != value {
			w.t.Fatalf("%s: %s holds %q, not %q", name, key, w.value(key), value)
		}
	}
}

// TestNamesWaitForApproval: a change of names that touches a key under approval opens a motion, and is carried with the
// approvals.
func TestNamesWaitForApproval(t *testing.T) {
	w, rev := guarded(t)
	for name := range w.renamings(rev) { // order-free: each has its own scope
		w, rev := guarded(t)
		x := w.renamings(rev)[name]
		before := w.state.Head().Revision
		id := w.propose(x.m)
		if w.state.Head().Revision != before {
			t.Errorf("%s: changed without approval", name)
		}
		mo, _, err := w.state.Motion(id)
		if txn, err2 := mo.Txn(); err != nil || err2 != nil || len(txn.Success) != len(mo.Basis) || mo.Subject() == "name" {
			t.Errorf("%s: shown as %q, %+v with %+v: %v, %v", name, mo.Subject(), txn, mo.Basis, err, err2)
		}
		w.cast(w.approve(id, 4))
		if got := w.fate(id); got != "carried" {
			t.Errorf("%s: %s", name, got)
		}
		w.holds(name, x.leaves)
		if _, end, _ := w.state.Motion(id); end.Revision != before+1 || !end.Succeeded {
			t.Errorf("%s: it ended as %+v after revision %d", name, end, before)
		}
	}
}

// TestNamesThatWaitedAreAsTheyWere: what a change of names found is a condition of it (P32), and so is the approval.
func TestNamesThatWaitedAreAsTheyWere(t *testing.T) {
	w, rev := guarded(t)
	for name := range w.renamings(rev) { // order-free: each has its own scope
		w, rev := guarded(t)
		x := w.renamings(rev)[name]
		first := w.propose(x.m)
		if x.touches == "/other" {
			w.one(w.put(x.touches, "2"))
		} else {
			w.cast(w.approve(w.propose(w.put(x.touches, "2")), 4))
		}
		w.cast(w.approve(first, 4))
		if got := w.fate(first); !strings.HasPrefix(got, "void: ") || !strings.Contains(got, "was changed after it opened") {
			t.Errorf("%s: after a change of %s it is %s", name, x.touches, got)
		}
	}
}

// TestNamesThatCannotBeOpenNoMotion: a change of names that would fail opens no motion, and one that fails when it is
// carried is void.
func TestNamesThatCannotBeOpenNoMotion(t *testing.T) {
	w, rev := guarded(t)
	u := w.uid("/a")
	for name, x := range map[string]struct {
		m    Mutation
		want error
	}{ // order-free: none changes anything
		"a name that is taken":   {w.bind("/a", "/other"), ErrNamed},
		"no such object":         {w.naming(Naming{Kind: Unbind, Object: w.uid("/other"), Key: []byte("/a")}), ErrUnnamed},
		"no such version":        {w.naming(Naming{Kind: Rollback, Object: u, Key: []byte("/a"), From: []byte("/a"), Revision: rev + 100}), ErrNoVersion},
		"a redirect in the past": {w.move("/a", "/b", 1), ErrUntil},
	} {
		if out := w.step(x.m).Outcomes[0]; out.Code != Failed || Failure(out.Reason) != x.want {
			t.Errorf("%s: %s, %v", name, out.Code, Failure(out.Reason))
		}
	}
	late := w.propose(w.move("/a", "/b", w.now.Add(2*time.Second)))
	w.now = w.now.Add(time.Minute)
	w.one(w.put("/other", "2"))
	w.cast(w.approve(late, 4))
	if got := w.fate(late); !strings.HasPrefix(got, "void: a redirect ends") {
		t.Errorf("a move whose redirect was over: %s", got)
	}
	long := w.bind("/a", "/later")
	long.Patient = true
	w.cast(w.approve(w.propose(long), 4))
	w.holds("a patient one", "/later=1")
	free := w.bind("/other", "/third")
	free.Patient = true
	if out := w.step(free).Outcomes[0]; Failure(out.Reason) != ErrPatient {
		t.Errorf("a patient one that takes no approval: %s, %v", out.Code, Failure(out.Reason))
	}
}

// TestApprovalsHoldUnderEveryName: a change that needs approval under one name needs it under all.
func TestApprovalsHoldUnderEveryName(t *testing.T) {
	w, _ := guarded(t)
	u := w.uid("/free")
	id := w.propose(w.put("/free", "2"))
	if v, _, err := w.state.newest([]byte("/a")); err != nil || string(v.Value) != "1" {
		t.Fatalf("changed without approval: %q, %v", v.Value, err)
	}
	w.propose(w.ops(put("/other", "2"), put("/free", "3")))
	w.cast(w.approve(id, 4))
	if v, _, err := w.state.newest([]byte("/a")); err != nil || string(v.Value) != "2" {
		t.Fatalf("not changed with approval: %q, %v", v.Value, err)
	}
	w.one(w.naming(Naming{Kind: Unbind, Object: u, Key: []byte("/free")}))
	w.one(w.put("/free", "mine"))
	if w.uid("/free") == u || w.uid("/a") != u || u == (aweigh.UID{}) {
		t.Fatal("another object")
	}
}
