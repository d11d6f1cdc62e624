package machine

import (
	"bytes"
	"slices"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/trust"
	"github.com/aweigh/aweigh/votes"
)

// Founder is an anchor of a new network.
type Founder struct {
	Name  string          // for people
	Key   votes.PublicKey // of the anchor's ballots
	Peer  Peer            // the node's libp2p identity
	Score uint32          // trust at the start in ppm; 0: one half
}

// NewGenesis makes the genesis of a network with the founders as its anchors.
func NewGenesis(name string, at aweigh.Instant, policy scope.Policy, founders ...Founder) (scope.Genesis, error) {
	g := scope.Genesis{Format: scope.Format, Name: name, Time: at, Policy: policy}
	for _, f := range founders {
		if f.Score == 0 {
			f.Score = FoundingScore
		}
		g.Anchors = append(g.Anchors, scope.Anchor{Name: f.Name, Key: f.Key, Peer: string(f.Peer), Score: trust.Score(f.Score)})
	}
	slices.SortFunc(g.Anchors, func(a, b scope.Anchor) int {
		x, y := a.Key.ID(), b.Key.ID()
		return bytes.Compare(x[:], y[:])
	})
	_, err := g.Check()
	return g, err
}

// FoundingScore is the trust of founders at the start, in ppm. From there it can rise as well as fall.
const FoundingScore = 500_000
