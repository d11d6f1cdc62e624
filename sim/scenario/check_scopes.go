package scenario

import (
	"fmt"
	"slices"
)

// maxPrefix bounds the prefixes of scopes and keys.
const maxPrefix = 64

// about reports whether a motion sets a scope's government, or ends it.
func (m Motion) about() bool { return m.Kind == "delegate" || m.Kind == "revoke" || m.Kind == "fold" }

// founding checks a motion that founds a scope, or gives it to others.
func (c *checker) founding(path string, s Scenario, i int) {
	m := s.Govern[i]
	if m.Kind != "delegate" {
		c.need(s.Network.Notice > 0, path, "without network.notice, scopes are founded for good")
		c.need(slices.ContainsFunc(s.Govern, func(o Motion) bool { return o.Kind == "delegate" && o.Prefix == m.Prefix }), path+".prefix", "no motion founds a scope for %q", m.Prefix)
	}
	c.need(0 < len(m.Prefix) && len(m.Prefix) <= maxPrefix, path+".prefix", "a prefix has between 1 and %d bytes", maxPrefix)
	c.need(m.Node == 0 && m.Sponsor == 0 && m.EpochBlocks == 0 && m.EpochTime == 0 && m.Share == 0, path, "a motion about a scope says prefix, anchors and mode")
	c.need(m.Kind != "fold" || len(m.Anchors) == 0 && m.Mode == "", path, "a scope comes home by its prefix alone")
	for _, o := range s.Govern[:i] {
		home := slices.ContainsFunc(s.Govern, func(f Motion) bool {
			return f.Kind == "fold" && f.Prefix == m.Prefix && o.At < f.At && f.At < m.At
		})
		c.need(m.Kind != "delegate" || o.Kind != "delegate" || o.Prefix != m.Prefix || home, path+".prefix", "%q is delegated already", m.Prefix)
	}
	c.known(path+".mode", m.Mode, modes)
	c.numbers(path+".anchors", m.Anchors, s.Network.Anchors+s.Network.Observers, "node")
	for j, n := range m.Anchors {
		at := fmt.Sprintf("%s.anchors[%d]", path, j)
		c.need(s.HoldsKey(n), at, "node %d never is an anchor", n)
		c.need(!slices.Contains(m.Anchors[:j], n), at, "%d is there twice", n)
	}
}

// everywhere are the attacks that touch a node as a whole.
var everywhere = []string{"twins", "fork", "amnesia", "clock"}

// inScope checks a role of one scope alone.
func (c *checker) inScope(path string, s Scenario, r Role) {
	c.need(slices.ContainsFunc(s.Govern, func(m Motion) bool { return m.Kind == "delegate" && m.Prefix == r.In }), path+".in", "no motion founds a scope for %q", r.In)
	c.need(r.Count == 0 && (r.Weight == "" || r.Weight == "all"), path, "who lies in one scope is said by anchors, or weight: all")
	for _, p := range r.Attacks {
		c.need(!slices.Contains(everywhere, p), path+".play", "%q is played in all scopes", p)
	}
	c.share(path+".rate", r.Rate)
	c.share(path+".above", r.Above)
	c.period(path+".from", r.From)
	c.period(path+".until", r.Until)
	c.period(path+".every", r.Every)
}

// Folds reports whether scopes come home in the world.
func (s Scenario) Folds() bool {
	return slices.ContainsFunc(s.Govern, func(m Motion) bool { return m.Kind == "fold" })
}

// Nests reports whether scopes are founded in the world, or may be.
func (s Scenario) Nests() bool {
	for _, m := range s.Govern {
		if m.Kind == "delegate" {
			return true
		}
	}
	return s.Splits()
}
