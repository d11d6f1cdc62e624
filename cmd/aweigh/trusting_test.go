package main

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/scope"
)

// TestOldGenesisIsNotEnough: past the trusting period the genesis alone is refused, and
// the error contains the advice.
func TestOldGenesisIsNotEnough(t *testing.T) {
	old := scope.Genesis{Time: aweigh.InstantOf(time.Now().Add(-trustingPeriod - time.Hour))}
	young := scope.Genesis{Time: aweigh.InstantOf(time.Now().Add(-time.Hour))}
	tr := trusting{period: trustingPeriod}
	if err := tr.check(young, nil); err != nil {
		t.Errorf("a young one: %v", err)
	}
	err := tr.check(old, nil)
	if !errors.Is(err, errOld) || !strings.Contains(err.Error(), "--trusted EPOCH:HASH") || exitCode(err, true) != exitUnverified {
		t.Errorf("an old one: %v", err)
	}
	if err := (&trusting{}).check(old, nil); err != nil {
		t.Errorf("of any age: %v", err)
	}
	tr.roster = "nonsense"
	if err := tr.check(young, nil); !errors.Is(err, errUsage) {
		t.Errorf("a roster that is none: %v", err)
	}
}
