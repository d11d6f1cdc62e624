package api

import (
	"context"
	"maps"
	"slices"
	"testing"

	"github.com/aweigh/aweigh/action"
	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/etcd/auth"
)

// TestEveryMethodHasARight: the table has a row for each method of the service, and no other.
func TestEveryMethodHasARight(t *testing.T) {
	methods := aweighv1.File_aweigh_v1_aweigh_proto.Services().ByName("Node").Methods()
	left := maps.Clone(rights)
	for i := range methods.Len() {
		name := "/aweigh.v1.Node/" + string(methods.Get(i).Name())
		if rights[name].may == nil {
			t.Errorf("%s has no right: a user could not make the request", name)
		}
		if rights[name].sees == nil {
			t.Errorf("%s does not state what it reads", name)
		}
		delete(left, name)
	}
	if len(left) > 0 {
		t.Errorf("there are no methods %v", slices.Sorted(maps.Keys(left)))
	}
}

// TestVerbsThatWriteAreForRoot: what they reach through aliases is not known when the user is judged.
func TestVerbsThatWriteAreForRoot(t *testing.T) {
	user := context.WithValue(t.Context(), grantKey{}, auth.Grant{By: &auth.Rights{Name: "alice"}})
	for _, class := range []action.Class{action.Write, action.Claim, action.Signal} {
		if mayAct(user, class, []byte("/a")) == nil || mayAct(t.Context(), class, []byte("/a")) != nil {
			t.Errorf("%v by a user without rights: %v; by the owner: %v", class, mayAct(user, class, nil), mayAct(t.Context(), class, nil))
		}
	}
}
