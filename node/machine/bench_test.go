package machine_test

import (
	"fmt"
	"testing"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/store"
	"github.com/aweigh/aweigh/votes"
)

// BenchmarkNewMachine starts one of many machines of a process on a fresh store.
func BenchmarkNewMachine(b *testing.B) {
	for _, anchors := range []int{4, 100, 1000} {
		b.Run(fmt.Sprintf("anchors=%d", anchors), func(b *testing.B) {
			var key votes.PrivateKey
			founders := make([]machine.Founder, anchors)
			for i := range founders {
				seed := aweigh.Sum([]byte{byte(i), byte(i >> 8)})
				var err error
				if key, err = votes.KeyFromSeed(votes.Ed25519, seed[:]); err != nil {
					b.Fatal(err)
				}
				founders[i] = machine.Founder{Key: key.Public(), Peer: machine.Peer(fmt.Sprint(i))}
			}
			policy := scope.OpenPolicy(quorum.BFT)
			policy.Limits.Anchors = max(policy.Limits.Anchors, anchors)
			g, err := machine.NewGenesis("bench", 1, policy, founders...)
			if err != nil {
				b.Fatal(err)
			}
			network, err := machine.NewNetwork(g, nil)
			if err != nil {
				b.Fatal(err)
			}
			ops, err := machine.Bootstrap(g)
			if err != nil {
				b.Fatal(err)
			}
			disk := store.NewMem()
			if err := disk.Commit(ops, true); err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := machine.NewMachine(machine.MachineConfig{Network: network, Key: &key}, disk); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
