package scenario

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aweigh/aweigh/internal/policytext"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
)

// Partitions are those of the root scope's policy, in the words of a policy's text.
func (s *Scenario) Partitions() (all []scope.Partition, err error) {
	for _, text := range s.Network.Partitions {
		p, err := policytext.ParsePartition(text)
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b scope.Partition) int { return bytes.Compare(a.Prefix, b.Prefix) })
	p := scope.OpenPolicy(quorum.BFT)
	p.Partitions = all
	return all, p.Check()
}

// IslePrefix begins the keys of the partition of drawn worlds.
const IslePrefix = "/isle/"

// islands lets anchors without a quorum decide provisionally, in one world of five, and parts the network for long
// enough: into two sides, or into three.
func (d drawing) islands(s *Scenario) {
	if !d.one(5) || s.Nests() || s.Load.Bursts > 0 || len(s.Network.Waits) > 0 {
		return
	}
	n := s.Network.Anchors
	after := d.between(time.Second, 3*time.Second)
	s.Network.Partitions = []string{fmt.Sprintf("prefix=%s share=%d/100 after=%v gather=%v window=1m", IslePrefix, 34+d.IntN(12), after, d.between(time.Second, 3*time.Second))}
	s.Load.Isles = 10 + d.IntN(40)
	for range 1 + d.IntN(2) {
		at := s.Stop
		s.Stop += after + d.between(3*time.Second, 8*time.Second)
		p := d.Perm(n)
		groups := [][]int{p[:n/2], p[n/2:]}
		if d.one(6) && n > 5 {
			groups = [][]int{p[:n/2], p[n/2 : n-1], p[n-1:]}
		}
		s.Faults.Timed = append(s.Faults.Timed, Fault{Kind: "partition", At: at, For: s.Stop - at - d.between(500*time.Millisecond, 2*time.Second), Groups: groups})
	}
}

// inventions lets the roles of worlds with a partition make up islands. Of 10, 11 or 13 anchors and a low share, liars
// within the budget are a quorum of an island.
func (d drawing) inventions(s *Scenario) {
	n := &s.Network
	if len(n.Partitions) == 0 || len(s.Roles) == 0 || n.Observers > 0 || len(s.Govern) > 0 {
		return
	}
	share := strings.Index(n.Partitions[0], "share=")
	n.Partitions = []string{n.Partitions[0][:share] + "share=35" + n.Partitions[0][strings.Index(n.Partitions[0], "/100"):]}
	n.Trust = nil // all weigh the same
	for most := []int{10, 11, 13}[d.IntN(3)]; n.Anchors < most; n.Anchors++ {
		for i := range s.Faults.Timed {
			if g := s.Faults.Timed[i].Groups; len(g) > 0 {
				side := n.Anchors % len(g)
				g[side] = append(slices.Clip(g[side]), n.Anchors)
			}
		}
	}
	for i := range s.Roles {
		s.Roles[i].Attacks = append(slices.Clone(s.Roles[i].Attacks), "invent")
	}
}
