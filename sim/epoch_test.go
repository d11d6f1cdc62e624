package sim

import (
	"testing"
	"time"
)

// TestEpochsEndUnderFire runs worlds whose epochs hold few blocks: all stay in
// agreement on every roster, and go on.
func TestEpochsEndUnderFire(t *testing.T) {
	changes := uint64(0)
	for seed := range uint64(20) {
		s := Draw(seed)
		s.Network.EpochBlocks = 3 + int(seed%9)
		s.Network.EpochTime = time.Second + time.Duration(seed)*100*time.Millisecond
		r, err := Run(t.Context(), s, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if why := r.Failure(); why != "" {
			t.Errorf("seed %d: %s", seed, why)
		}
		for _, g := range r.Goals {
			if g.Name == "epoch change" {
				changes += g.Count
			}
		}
	}
	if changes < 20 {
		t.Errorf("%d epochs changed in 20 worlds", changes)
	}
}
