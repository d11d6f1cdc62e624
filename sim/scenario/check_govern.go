package scenario

import (
	"fmt"
	"slices"
)

// maxMotions bounds the motions of a scenario.
const maxMotions = 200

// govern checks the motions, with their nodes.
func (c *checker) govern(s Scenario) {
	c.split(&s)
	nodes := s.Network.Anchors + s.Network.Observers
	c.need(len(s.Govern) <= maxMotions, "govern", "has %d motions, more than %d", len(s.Govern), maxMotions)
	for i, m := range s.Govern {
		path := fmt.Sprintf("govern[%d]", i)
		c.period(path+".at", m.At)
		c.need(m.At < s.Stop, path+".at", "%v is not before stop, %v", m.At, s.Stop)
		c.numbers(path+".by", m.By, nodes, "node")
		for j, n := range m.By {
			c.need(s.HoldsKey(n), fmt.Sprintf("%s.by[%d]", path, j), "node %d never is an anchor", n)
		}
		c.need(m.about() || m.Prefix == "" && len(m.Anchors) == 0, path, "only a motion of kind delegate or revoke says who governs a scope")
		c.need(m.about() || m.Kind == "policy" || m.Mode == "", path+".mode", "only a motion of kind delegate, revoke or policy sets a mode")
		if m.about() {
			c.founding(path, s, i)
			continue
		}
		if m.Kind == "policy" {
			c.need(m.Node == 0 && m.Sponsor == 0, path, "a motion about the policy is about no node")
			some := m.EpochBlocks > 0 || m.EpochTime > 0 || m.Share > 0 || m.Guard != "" || m.Author != "" || m.Mode != "" || m.Group != ""
			c.need(some, path, "changes nothing: say epochblocks, epochtime, share, guard, group, author or mode")
			c.group(path+".group", &s, m.Group)
			byzantine := []string{"bft", "fast"}
			c.need(m.Mode == "" || slices.Contains(byzantine, m.Mode) && slices.Contains(byzantine, s.Network.Mode), path+".mode",
				"only bft and fast change into each other")
			c.need(m.Author == "" || s.lists(m.Author), path+".author", "network.authors has no entry %q", m.Author)
			c.share(path+".share", m.Share)
			c.need(m.Share == 0 || s.Approval.Motions > 0, path+".share", "nothing is put to the vote")
			c.within(path+".epochblocks", m.EpochBlocks, 0, 1_000_000_000)
			c.need(m.EpochTime == 0 || m.EpochTime >= leastEpoch, path+".epochtime", "%v is less than a second", m.EpochTime)
			continue
		}
		none := m.EpochBlocks == 0 && m.EpochTime == 0 && m.Share == 0 && m.Guard == "" && m.Author == "" && m.Group == ""
		c.need(none, path, "only a motion of kind policy changes epochs, approvals, groups and authors")
		c.numbers(path+".node", []int{m.Node}, nodes, "node")
		c.need(m.Kind == "admit" || s.HoldsKey(m.Node), path+".node", "node %d never is an anchor", m.Node)
		c.need(m.Kind == "admit" || m.Sponsor == 0, path+".sponsor", "only who is admitted has a sponsor")
		c.need(m.Kind != "retire" || len(m.By) == 0, path+".by", "an anchor retires by itself")
		c.need(m.Kind == "attest" || m.Score == 0, path+".score", "only a motion of kind attest sets a score")
		if m.Kind == "attest" {
			c.need(m.Score > 0, path+".score", "sets none")
			c.share(path+".score", m.Score)
		}
		if m.Kind == "admit" {
			c.numbers(path+".sponsor", []int{m.Sponsor}, nodes, "node")
			c.need(m.Sponsor != m.Node && s.HoldsKey(m.Sponsor), path+".sponsor", "node %d cannot stand surety for node %d", m.Sponsor, m.Node)
		}
	}
}

// HoldsKey reports whether a node has an anchor key: anchors do, and observers that
// a role or a motion names.
func (s Scenario) HoldsKey(n int) bool {
	return n < s.Network.Anchors ||
		slices.ContainsFunc(s.Govern, func(m Motion) bool { return m.Kind == "admit" && m.Node == n }) ||
		slices.ContainsFunc(s.Roles, func(r Role) bool { return slices.Contains(r.Anchors, n) })
}
