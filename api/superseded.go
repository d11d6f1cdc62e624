package api

import (
	"regexp"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/node"
	"github.com/aweigh/aweigh/scope"
)

// byPolicy is how the reason of a superseded motion, which blocks keep, names the policy in its place: by the start of
// its hash.
var byPolicy = regexp.MustCompile(`^another policy, ([0-9a-f]{8}), takes`)

// superseding names in the reasons of superseded motions the motion of the policy in their place, which requests take.
func (s *service) superseding(motions ...*aweighv1.Motion) error {
	var of map[string]string // starts of motions' IDs by those of their policies
	for _, m := range motions {
		at := byPolicy.FindStringSubmatch(m.Reason)
		if m.Fate != scope.Superseded.String() || at == nil {
			continue
		}
		if of == nil {
			all, _, err := s.route.Motions(true)
			if err != nil {
				return problem(err)
			}
			of = carriedPolicies(all)
		}
		by := "another policy, whose hash begins with " + at[1] + ", takes" // its motion is not on record any more
		if id := of[at[1]]; id != "" {
			by = "the policy of motion " + id + " takes"
		}
		m.Reason = by + m.Reason[len(at[0]):]
	}
	return nil
}

// carriedPolicies are the starts of the IDs of motions that were carried, by those of their policies' hashes: empty
// where those of two are alike.
func carriedPolicies(all []node.Motion) map[string]string {
	of := make(map[string]string)
	for i := range all {
		d := decisionOf(&all[i])
		if d == nil || d.Policy == nil || all[i].Ending == nil || all[i].Ending.Fate != scope.Carried {
			continue
		}
		hash, id := d.Policy.Hash().Short(), all[i].ID.Short()
		if _, twice := of[hash]; twice {
			id = ""
		}
		of[hash] = id
	}
	return of
}
