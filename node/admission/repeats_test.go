package admission

import (
	"testing"
	"time"
)

// TestRepeatsAreBounded: of what only repeats, a node sends so much and no more, however many scopes there are.
func TestRepeatsAreBounded(t *testing.T) {
	all := NewRepeats()
	scopes := make([]ScopeRepeats, 100)
	for i := range scopes {
		scopes[i] = all.Scope()
	}
	const each = 100
	again := 0
	for range each {
		for i := range scopes {
			if scopes[i].May() {
				again++
			}
		}
	}
	if left := int(all.left.Load()); again < repeatsAtOnce || again > 2*repeatsAtOnce+300 || again+left != 100*each {
		t.Errorf("%d were repeated, %d left out", again, left)
	}
	// A scope that repeats all the time leaves each other its own.
	all.limit.ReserveN(time.Now(), repeatsAtOnce)
	all.limit.ReserveN(time.Now(), repeatsAtOnce)
	quiet := all.Scope()
	if !quiet.May() {
		t.Error("a scope repeats nothing because others do")
	}
	if alone := new(ScopeRepeats); !alone.May() {
		t.Error("without a bound, it was left out")
	}
}
