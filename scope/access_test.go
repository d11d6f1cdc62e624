package scope

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/aweigh/aweigh/lineage"
)

// someAccess is a well-formed Access, different for each revision.
func someAccess(revision int64) Access {
	return Access{
		Revision: revision, Enabled: true,
		Users: []User{{Name: "alice", Password: []byte("$2a$04$" + strings.Repeat("x", 53)), Roles: []string{"reader"}}, {Name: RootName, Roles: []string{"reader", RootName}}},
		Roles: []Role{{Name: "reader", Grant: []Permission{{Read: true, Key: []byte("/a/"), End: []byte("/a0")}, {Read: true, Write: true, Key: fmt.Append(nil, "/b/", revision)}}}},
	}
}

func (w *world) permit(revision int64) Mutation { return w.mutation(Permit, someAccess(revision)) }

// TestAccessIsChangedAsItIsKnown: a change of users and roles applies to those that its
// author knew, and to no others; two of one block as well as two of two.
func TestAccessIsChangedAsItIsKnown(t *testing.T) {
	w := newWorld(t)
	if o := w.step(w.permit(2)).Outcomes[0]; !errors.Is(Failure(o.Reason), ErrAccessAuthor) {
		t.Errorf("by somebody: %s %s", o.Code, o.Reason)
	}
	w.author = testKey(t, 1) // of an anchor
	if a, err := w.state.Access(); err != nil || !reflect.DeepEqual(a, Access{Revision: 1}) {
		t.Fatalf("at first: %+v, %v", a, err)
	}
	res := w.step(w.permit(2), w.permit(2), w.permit(3), w.put("a", "1"), w.permit(5))
	for i, want := range []error{nil, ErrAccessChanged, nil, nil, ErrAccessChanged} {
		if o := res.Outcomes[i]; !errors.Is(Failure(o.Reason), want) || (want == nil) != (o.Code == Applied) {
			t.Errorf("%d: %s %s", i, o.Code, o.Reason)
		}
	}
	want := someAccess(3)
	if a, err := w.state.Access(); err != nil || accessDigest(&a) != accessDigest(&want) {
		t.Errorf("in the end: %+v, %v", a, err)
	}
	if got := w.state.Head().Revision; got != 2 { // of the one put
		t.Errorf("revision %d", got)
	}
	var last lineage.Entry
	for i := range w.state.Head().LineageSize {
		if e, _, err := w.state.Lineage().Entry(i); err != nil {
			t.Fatal(err)
		} else if e.Class == lineage.Access {
			if e.Prior != last.Posterior {
				t.Errorf("entry %d does not follow the one before", i)
			}
			last = e
		}
	}
	if last.Posterior != accessDigest(&want) {
		t.Error("the lineage does not name the users and roles")
	}
}

// TestAccessThatCannotBe is refused before it is ordered.
func TestAccessThatCannotBe(t *testing.T) {
	for name, change := range map[string]func(*Access){
		"locked out":                        func(a *Access) { a.Users = a.Users[:1] },
		"root without the role":             func(a *Access) { a.Users[1].Roles = []string{"reader"} },
		"users out of order":                func(a *Access) { a.Users[0], a.Users[1] = a.Users[1], a.Users[0] },
		"a user twice":                      func(a *Access) { a.Users[1].Name = "alice" },
		"a role of nobody":                  func(a *Access) { a.Users[0].Roles = []string{"writer"} },
		"roles out of order":                func(a *Access) { a.Users[1].Roles = []string{RootName, "reader"} },
		"an empty name":                     func(a *Access) { a.Roles[0].Name = "" },
		"a long name":                       func(a *Access) { a.Users[0].Name = strings.Repeat("x", maxAccessName+1) },
		"a password to be checked for days": func(a *Access) { a.Users[0].Password = []byte("$2a$31$" + strings.Repeat("x", 53)) },
		"no hash":                           func(a *Access) { a.Users[0].Password = []byte("secret") },
		"a short key":                       func(a *Access) { a.Users[0].Key = make([]byte, userKey-1) },
		"a key without a password":          func(a *Access) { a.Users[1].Key = make([]byte, userKey) },
		"of the future":                     func(a *Access) { a.Users[0].Since = 3 },
		"a permission twice":                func(a *Access) { a.Roles[0].Grant[1] = a.Roles[0].Grant[0] },
		"a permission of nothing": func(a *Access) {
			a.Roles[0].Grant[0].Read = false
		},
	} {
		w := newWorld(t)
		a := someAccess(2)
		change(&a)
		m := w.mutation(Permit, a)
		m.Author = w.author.Public().ID()
		if _, err := Sign(w.author, w.g.Policy.Limits, m); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
