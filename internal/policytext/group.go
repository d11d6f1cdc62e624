package policytext

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/trust"
)

// GroupHelp states how groups are written.
const GroupHelp = `4..7 lets four to seven anchors weigh at a time, and puts the others on standby; off gives every anchor
a weight. More follows after commas: tolerates=2, the anchors that may fail at a time (default: as many
as the smallest group bears); replace=3, the epochs of absence after which an anchor on standby takes
the place; and load=10000, the changes in an epoch for each of which one more anchor weighs (default:
load changes nothing)`

// replaceAfter is the default of replace.
const replaceAfter = 3

// ParseGroup reads a group as GroupHelp has it, for a policy of a mode. Errors wrap ErrSyntax.
func ParseGroup(text string, m quorum.Mode) (g trust.Group, err error) {
	if text == "off" {
		return g, nil
	}
	words := strings.Split(text, ",")
	least, most, between := strings.Cut(words[0], "..")
	if !between {
		most = least
	}
	number := func(text string, bits int) uint64 {
		n, bad := strconv.ParseUint(text, 10, bits)
		if bad != nil && err == nil {
			err = fmt.Errorf("%w: group: %q is not a whole number from 0 on, or too large; give it like 4..7", ErrSyntax, text)
		}
		return n
	}
	g = trust.Group{Least: uint32(number(least, 32)), Most: uint32(number(most, 32)), Replace: replaceAfter}
	each := uint32(2)
	if m.Byzantine() {
		each = 3
	}
	g.Tolerates = (max(g.Least, 1) - 1) / each
	for _, w := range words[1:] {
		if w == "" {
			return g, fmt.Errorf("%w: group: nothing follows a comma in %q", ErrSyntax, text)
		}
		switch key, value, _ := strings.Cut(w, "="); key {
		case "tolerates":
			g.Tolerates = uint32(number(value, 32))
		case "replace":
			g.Replace = uint32(number(value, 32))
		case "load":
			g.Load = number(value, 63)
		default:
			return g, fmt.Errorf("%w: group: %q is none of tolerates=, replace= and load=", ErrSyntax, w)
		}
	}
	if err == nil && g.Most == 0 {
		err = fmt.Errorf("%w: group: %q has no anchor; to let all of them weigh, give off", ErrSyntax, text)
	}
	return g, err
}
