package policytext

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/trust"
)

// GroupHelp states how groups are written.
const GroupHelp = `with 4..7 four anchors weigh at a time, and up to seven where more is asked for; the others are on
standby. With off all weigh. After commas may follow tolerates=2, the anchors that may fail at a time,
which takes seven (default: as many as the smallest group bears); replace=2, the epochs of absence after
which an anchor on standby takes the place (default 3; 0: absence costs scores alone); and load=10000, the
changes in an epoch for each of which one more anchor weighs (default: load changes nothing). What is left
out has its default, whatever it was before`

// replaceAfter is the default of replace.
const replaceAfter = 3

// ParseGroup reads a group as GroupHelp has it, for a policy of a mode. Errors wrap ErrSyntax.
func ParseGroup(text string, m quorum.Mode) (g trust.Group, err error) {
	words := strings.Split(text, ",")
	for i := range words {
		words[i] = strings.TrimSpace(words[i])
	}
	if words[0] == "off" {
		if len(words) > 1 {
			err = fmt.Errorf("%w: group: nothing can follow off", ErrSyntax)
		}
		return g, err
	}
	least, most, between := strings.Cut(words[0], "..")
	if !between {
		most = least
	}
	given := make(map[string]bool)
	number := func(text string, bits int) uint64 {
		n, bad := strconv.ParseUint(text, 10, bits)
		if bad != nil && err == nil {
			err = fmt.Errorf("%w: group: %q is not a whole number, or too large; give it like 4..7,replace=3", ErrSyntax, text)
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
		key, value, _ := strings.Cut(w, "=")
		if given[key] {
			return g, fmt.Errorf("%w: group: %s is there twice", ErrSyntax, key)
		}
		given[key] = true
		switch key {
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
