package scenario

import (
	"fmt"
	"slices"
	"strings"

	"github.com/aweigh/aweigh/internal/policytext"
	"github.com/aweigh/aweigh/scope"
)

// LeaseQuotas reports whether some entry of the authors bounds leases. Actors ask for leases then.
func (s *Scenario) LeaseQuotas() bool {
	return slices.ContainsFunc(s.Network.Authors, func(line string) bool { return strings.Contains(line, " leases=") })
}

// freely is the rate of an entry that counts mutations, and holds up none.
const freely = 100_000

// tight bounds the leases of all entries that permit some, in half of the worlds with authors: no lease counts under an
// entry without the bound. In half of these, all entries have a rate, so that all mutations count.
func (d drawing) tight(s *Scenario) {
	if len(s.Network.Authors) == 0 || d.one(2) {
		return
	}
	rates := d.one(2)
	s.Network.Authors = slices.Clone(s.Network.Authors)
	for i, line := range s.Network.Authors {
		a, err := policytext.ParseAuthor(line)
		if err != nil || slices.Equal(a.Verbs, []string{scope.VerbRead}) {
			continue
		}
		if a.Quota.Leases == 0 && (len(a.Verbs) == 0 || slices.Contains(a.Verbs, scope.VerbLease)) {
			s.Network.Authors[i] += fmt.Sprintf(" leases=%d", 1+d.IntN(4))
		}
		if rates && a.Quota.Rate == 0 {
			rate := 2 + d.IntN(4)
			if len(a.Prefixes) > 4 { // of the keys that all other clients write
				rate = freely
			}
			s.Network.Authors[i] += fmt.Sprintf(" rate=%d", rate)
		}
	}
}
