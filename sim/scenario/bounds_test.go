package scenario

import (
	"slices"
	"testing"
)

// TestBoundsAreDrawnSetAndReset: in 1,000 worlds each bound is drawn, within what Check takes; and each can be set by
// its path, and reset.
func TestBoundsAreDrawnSetAndReset(t *testing.T) {
	drawn := make(map[string]bool)
	for seed := range uint64(1000) {
		s := Draw(seed)
		for _, k := range s.Bounds.knobs() {
			drawn[k.path] = drawn[k.path] || k.get() != 0
		}
	}
	var s Scenario
	for _, k := range s.Bounds.knobs() {
		if !drawn[k.path] {
			t.Errorf("%s is never drawn", k.path)
		}
		set, err := s.Set(k.path, k.text(k.least))
		if err == nil {
			err = set.Check()
		}
		if err != nil {
			t.Error(err)
			continue
		}
		all := set.Bounds.knobs()
		i := slices.IndexFunc(all, func(o knob) bool { return o.path == k.path })
		if all[i].get() != k.least {
			t.Errorf("%s is %v, set to %v", k.path, all[i].value, k.least)
		}
		if less, _ := s.Set(k.path, k.text(k.most+1)); less.Check() == nil {
			t.Errorf("%s is above its value in production, and passes", k.path)
		}
		if reset, err := set.Set(k.path, "null"); err != nil || reset.Bounds.knobs()[i].get() != 0 {
			t.Errorf("%s is not reset: %v", k.path, err)
		}
	}
}
