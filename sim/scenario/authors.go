package scenario

import (
	"fmt"
	"slices"
	"strings"

	"github.com/aweigh/aweigh/internal/policytext"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
)

// Authors are the authors of the root scope's policy, in the words of a policy's text; without some, anyone may write.
func (s *Scenario) Authors() (all []scope.Author, err error) {
	if len(s.Network.Authors) == 0 {
		return []scope.Author{{Name: scope.Anyone.String(), Who: scope.Anyone}}, nil
	}
	for _, text := range s.Network.Authors {
		a, err := policytext.ParseAuthor(text)
		if err != nil {
			return nil, err
		}
		all = policytext.SetAuthor(all, a)
	}
	p := scope.OpenPolicy(quorum.BFT)
	p.Authors = all
	return all, p.Check()
}

// authors limits what actors and programs may do in half of the worlds that have actors: clients of anchors and of
// observers by different entries. All other requests are permitted.
func (d drawing) authors(s *Scenario) {
	if s.Load.Acts == 0 || s.Nests() || len(s.Load.Under) > 0 || d.one(2) {
		return
	}
	rest := "rest who=any"
	for c := 'b'; c < 'x'; c++ { // actors' keys begin with /act/, and those of programs with /x
		rest += fmt.Sprintf(" prefix=/%c", c)
	}
	s.Network.Authors = []string{rest, "whole who=any verbs=compact,lease"}
	if d.one(2) { // for readers alone, so they permit no change
		s.Network.Authors = append(s.Network.Authors, "observers who=listed list=/observers/ verbs=read", "reads who=any verbs=read")
	}
	for i, who := range []string{"anchors", "any"} {
		if d.one(4) {
			continue
		}
		line := fmt.Sprintf("act%d who=%s", i, who)
		if !d.one(3) {
			for _, prefix := range [][]string{{RuledPrefix}, {OwnPrefix}, {"/x"}, {RuledPrefix, "/x"}, {RuledPrefix + "k", `"/x\x00"`}}[d.IntN(5)] {
				line += " prefix=" + prefix
			}
		}
		verbs := slices.DeleteFunc([]string{"age", "alias", "compact", "delete", "extend", "lease", "put", "take", "users"}, func(string) bool { return d.one(5) })
		if len(verbs) > 0 && !d.one(3) {
			line += " verbs="
			for i, verb := range verbs {
				if i > 0 {
					line += ","
				}
				line += verb
			}
		}
		s.Network.Authors = append(s.Network.Authors, line)
	}
}

// quotas bounds what the authors have, in two of three worlds that have such: by so little that actors and programs
// meet the bounds. The first of the actors then floods.
func (d drawing) quotas(s *Scenario) {
	if len(s.Network.Authors) == 0 || d.one(3) {
		return
	}
	for i, line := range s.Network.Authors {
		switch {
		case i == 1 && d.one(2): // of all clients; tenants grant again what they cannot keep
			s.Network.Authors[i] = fmt.Sprintf("%s leases=%d", line, 1+d.IntN(4))
		case i > 1:
			for _, word := range []string{"rate=%d", "bytes=%d", "motions=%d"} {
				if n := 1 + d.IntN(3); !d.one(3) {
					if word == "bytes=%d" {
						n *= 40
					}
					s.Network.Authors[i] += " " + fmt.Sprintf(word, n)
				}
			}
		}
	}
}

// Quotas reports whether some entry of the authors has a quota.
func (s *Scenario) Quotas() bool {
	return slices.ContainsFunc(s.Network.Authors, func(line string) bool {
		return strings.Contains(line, " rate=") || strings.Contains(line, " bytes=") || strings.Contains(line, " leases=") || strings.Contains(line, " motions=")
	})
}

// Floods reports whether an author floods: some entry has a rate.
func (s *Scenario) Floods() bool {
	return slices.ContainsFunc(s.Network.Authors, func(line string) bool { return strings.Contains(line, " rate=") })
}

// lists reports whether the network's authors have an entry with a name.
func (s *Scenario) lists(name string) bool {
	return slices.ContainsFunc(s.Network.Authors, func(line string) bool { return strings.HasPrefix(line, name+" ") })
}

// Revokes reports whether a decision takes an entry of the authors away.
func (s *Scenario) Revokes() bool {
	return slices.ContainsFunc(s.Govern, func(m Motion) bool { return m.Author != "" })
}

// revocations takes entries of actors away and gives them back, in half of the worlds that have such.
func (d drawing) revocations(s *Scenario) {
	if !s.lists("act0") && !s.lists("act1") || d.one(2) {
		return
	}
	for range 1 + d.IntN(4) {
		if name := fmt.Sprint("act", d.IntN(2)); s.lists(name) {
			s.Govern = append(s.Govern, Motion{Kind: "policy", At: d.between(s.Stop/8, s.Stop*7/8), Author: name})
		}
	}
	if s.Network.EpochBlocks == 0 {
		s.Network.EpochBlocks = 3 + d.IntN(10)
	}
}
