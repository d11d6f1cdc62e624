package scope

import (
	"fmt"
	"testing"

	"github.com/aweigh/aweigh/votes"
)

// TestP54IslandsOfManyMembersRejoin: the certificate of an island of many members, with as many bundles as a Rejoining
// takes, is brought back.
func TestP54IslandsOfManyMembersRejoin(t *testing.T) {
	g, keys := testGenesis(t, 250)
	g.Policy.EpochBlocks, g.Policy.Partitions, g.Policy.Limits.Anchors = 500, []Partition{shipPartition()}, 250
	var members []string
	for i := range g.Anchors {
		g.Anchors[i].Name = fmt.Sprintf("anchor%d", i)
		members = append(members, g.Anchors[i].Name)
	}
	r := realmOf(t, g, keys)
	r.one(r.put("/ship/log", "1"))
	c := r.isle(members...)
	for i := range maxRejoinBundles {
		c.do(c.put("/ship/log", fmt.Sprint(i)))
	}
	src := c.source()
	re, err := src.Next(c.g.Descent.Keys, 1<<20)
	if err != nil || len(re.Bundles) != maxRejoinBundles {
		t.Fatalf("%d bundles, %v", len(re.Bundles), err)
	}
	for what, re := range map[string]Rejoining{"its announcement": src.Announcement(), "its changes": re} { // order-free
		b, err := Sign(r.author, r.g.Policy.Limits, r.mutation(Rejoin, re))
		if err == nil {
			_, err = CheckBundle(b.Raw(), r.g.Policy.Limits, votes.Verify)
		}
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
}
