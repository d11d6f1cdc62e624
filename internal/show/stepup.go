package show

import (
	"fmt"
	"strings"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
)

// Asked writes who is asked to approve a step-up, and how. Only the table has a form for it.
func (p Printer) Asked(r *aweighv1.MotionResponse) {
	m := r.Motion
	fmt.Fprintf(p.Out, "motion %s waits for %s, until %s%s\n", short(m.Id), Line(orNone(lacking(m))), instant(m.DeadlineNs), in(m.DeadlineNs))
	fmt.Fprintf(p.Out, "   to approve it, with the key of one of them, at any node:  aweigh ballot approve %s --key FILE.key\n", short(m.Id))
	fmt.Fprintf(p.Out, "   to refuse:  aweigh ballot reject %s --key FILE.key;  to follow it:  aweigh motion watch %s\n", short(m.Id), short(m.Id))
}

// seconds are the voters on a step-up that have not voted: "bob or carol".
func seconds(m *aweighv1.Motion) string {
	var names []string
	for _, v := range m.Voters {
		if len(v.Ballots) == 0 {
			names = append(names, voterName(v))
		}
	}
	return strings.Join(names, " or ")
}
