package sim

import (
	"testing"
	"time"
	"fmt"
"os"
)

func TestTry(t *testing.T) {
	start := time.Now()
	f,_:=os.Create("/tmp/trace.txt")
	r, _ := Run(t.Context(), Scenario{Seed: 1, Network: Network{Anchors: 7, Observers: 2, EpochBlocks: 6, Whole: 2},
		Links: Links{Model: "constant", Delay: 5*time.Millisecond},
		Load: Load{Clients: 4, Writes: 90, Reads: 5}, Stop: 3*time.Second,
		Govern: []Motion{{Kind: "admit", At: time.Second, Node: 7, Sponsor: 0}},
		Heal: &Heal{}}, Options{Trace: f})
	fmt.Println(r.Failure(), time.Since(start), r.Events, r.Blocks)
	for _, e := range r.Epochs {
		fmt.Println(e)
	}
	fmt.Println(r.Pauses, r.Goals, r.Attacks)
}
