package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestStandbysTakeThePlacesOfTheDead: of six anchors, four weigh. Two of these are killed, one after the other, and
// anchors on standby take their places, while clients write. Of six that all weigh, the four that are left could decide
// nothing. An anchor that comes back is on standby, and has what it missed.
func TestStandbysTakeThePlacesOfTheDead(t *testing.T) {
	t.Parallel()
	n := newNetwork(t, 6, false, "--group", "4,replace=2", "--epoch-blocks", "8")
	n.start()
	g := n.government(n.nodes[0])
	var weigh, rest []int
	for i, p := range n.nodes {
		switch word := g.standing(p.name).Word; word {
		case "active":
			weigh = append(weigh, i)
		case "standby":
			rest = append(rest, i)
		default:
			t.Fatalf("%s is %q at the start", p.name, word)
		}
	}
	if len(weigh) != 4 || len(rest) != 2 {
		t.Fatalf("%v weigh, and %v are on standby", weigh, rest)
	}
	if said := n.must("anchor", "ls", "--api", n.nodes[0].api); !strings.Contains(said, n.nodes[rest[0]].name+" is on standby: it can take the place of an anchor that") {
		t.Errorf("the list says why no anchor is on standby:\n%s", said)
	}
	stays := weigh[0]
	w := n.writers(4, stays, weigh[1], rest[0], rest[1])
	for _, victim := range weigh[2:] {
		n.nodes[victim].signal(sigKill)
		n.governed(n.nodes[stays], 2*time.Minute, n.nodes[victim].name+" is replaced", func(g *government) error {
			active := 0
			for _, a := range g.Anchors {
				if a.Standing == "active" {
					active++
				}
			}
			if s := g.standing(n.nodes[victim].name); s.Word != "standby" || s.Weight > 0 || active != 4 {
				return fmt.Errorf("epoch %d: it is %s and weighs %d, %d are active", g.Header.Epoch, s.Word, s.Weight, active)
			}
			return nil
		})
	}
	w.end(t, "two of four killed")
	n.put(stays, "/after")
	for _, victim := range weigh[2:] {
		n.nodes[victim].start()
	}
	n.agreed(time.Minute)
	if got := n.must("get", "/after", "--api", n.nodes[weigh[3]].api, "-o", "value"); got != "v\n" {
		t.Errorf("an anchor that came back has %q", got)
	}
	g = n.government(n.nodes[stays])
	if s := g.standing(n.nodes[weigh[3]].name); s.Word != "standby" {
		t.Errorf("an anchor that came back is %s", s.Word)
	}
}
