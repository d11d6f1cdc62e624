package show

import (
	"regexp"
	"strings"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/trust"
)

// Names are what commands take for what reasons of changes of trust, which blocks keep, name by the starts of hashes.
type Names struct {
	motions map[string]string // their IDs, by those of their decisions
	reasons map[string]string // that scores were attested for, likewise
	anchors map[string]string // their names, by their IDs
}

// NamesOf are the names of the motions and the anchors in a node's answers.
func NamesOf(motions []*aweighv1.Motion, trust *aweighv1.TrustResponse) Names {
	n := Names{make(map[string]string), make(map[string]string), make(map[string]string)}
	for _, m := range motions {
		if len(m.Decision) == 0 {
			continue
		}
		decision, id := short(m.Decision), short(m.Id)
		if _, twice := n.motions[decision]; twice {
			id = ""
		}
		n.motions[decision] = id
		if d := DecisionOf(m); d != nil && d.Kind == scope.Attest {
			n.reasons[decision] = d.Reason
		}
	}
	for id, name := range namesOf(trust) {
		n.anchors[short([]byte(id))] = name
	}
	return n
}

// inReason is how reasons name a decision, which they call a motion, and an anchor.
var inReason = regexp.MustCompile(`\b(motion |sponsor |surety: )([0-9a-f]{8})\b`)

// reason names the motion of each decision, and each anchor by its name, and says for what a score was attested.
func (n Names) reason(text string) string {
	if strings.HasPrefix(text, trust.Warned.String()+":") { // it names motions, and no decision
		return text
	}
	because := ""
	named := inReason.ReplaceAllStringFunc(text, func(s string) string {
		at := inReason.FindStringSubmatch(s)
		what, hash := at[1], at[2]
		if what == "motion " {
			if why := n.reasons[hash]; why != "" {
				because = ", because " + why
			}
			if id := n.motions[hash]; id != "" {
				return what + id
			}
			return "decision " + hash // its motion is not on record any more, or there were several
		}
		if name := n.anchors[hash]; name != "" {
			return what + name
		}
		return s
	})
	return named + because
}
