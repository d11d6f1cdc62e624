package node

import (
	"testing"

	"github.com/aweigh/aweigh"
)

// TestEachScopeThatIsSilentIsTold: a scope that was still behind when another one was told of is told of as well, and
// once.
func TestEachScopeThatIsSilentIsTold(t *testing.T) {
	a, b := new(Replica), new(Replica)
	var s silences
	s.met(a)
	s.met(b)
	for _, v := range []struct {
		until       map[*Replica]aweigh.Epoch
		news, first bool
	}{
		{map[*Replica]aweigh.Epoch{a: 5}, true, true},
		{map[*Replica]aweigh.Epoch{a: 5, b: 9}, true, true},
		{map[*Replica]aweigh.Epoch{a: 5, b: 9}, false, false},
		{map[*Replica]aweigh.Epoch{a: 6, b: 9}, true, false},
	} {
		if news, first := s.tell(v.until); news != v.news || first != v.first {
			t.Errorf("%v: news %v, first %v", v.until, news, first)
		}
	}
	if s.isNew(a) || s.isNew(b) {
		t.Error("a scope that was told of is new")
	}
}

// TestLossesThatGoOnAreTold: what is met again and again in a scope postpones nothing; a new scope does.
func TestLossesThatGoOnAreTold(t *testing.T) {
	a, b := new(Replica), new(Replica)
	var s silences
	s.met(a)
	began := s.since
	s.met(a)
	if !s.since.Equal(began) {
		t.Error("the loss in the same scope counts as new")
	}
	s.met(b)
	if s.since.Equal(began) {
		t.Error("the loss in another scope does not count as new")
	}
}
