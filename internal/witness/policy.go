package witness

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Policy is the witnesses of a log and the rule which of them must cosign a checkpoint.
type Policy struct {
	witnesses []witness
	groups    []group // each after its members
	quorum    string
}

// group counts as a signer if enough of its members do.
type group struct {
	name    string
	need    int
	members []string // witnesses and groups
}

// ErrPolicy is wrapped by errors about the text of a policy.
var ErrPolicy = errors.New("witness: not a policy")

// none is the quorum that takes no witness.
const none = "none"

// Parse reads a policy in the form of C2SP's tlog-policy (https://c2sp.org/tlog-policy): lines
//
//	witness NAME VKEY [URL]
//	group NAME all|any|NUMBER NAME...
//	quorum NAME
//
// A URL is a submission prefix. Lines "log" and "#" are skipped. Errors wrap ErrPolicy.
func Parse(text string) (*Policy, error) {
	r := reader{free: make(map[string]bool)}
	number := 0
	for line := range strings.Lines(text) {
		number++
		if err := r.line(strings.TrimSuffix(line, "\n")); err != nil {
			return nil, fmt.Errorf("%w: line %d: %w", ErrPolicy, number, err)
		}
	}
	if r.quorum == "" {
		return nil, fmt.Errorf("%w: it has no line \"quorum NAME\"", ErrPolicy)
	}
	return &r.Policy, nil
}

// reader reads a policy line by line.
type reader struct {
	Policy
	free map[string]bool // names of witnesses and groups; whether the name is in no group yet
}

func (r *reader) line(line string) error {
	if strings.ContainsFunc(line, func(c rune) bool { return c < ' ' && c != '\t' || c == 0x7f }) {
		return errors.New("it has a control character")
	}
	words := strings.FieldsFunc(line, func(c rune) bool { return c == ' ' || c == '\t' })
	if len(words) == 0 || strings.HasPrefix(words[0], "#") {
		return nil
	}
	switch what, args := words[0], words[1:]; {
	case what == "log":
		return nil
	case what == "witness" && (len(args) == 2 || len(args) == 3):
		return r.witness(args)
	case what == "group" && len(args) >= 3:
		return r.group(args[0], args[1], args[2:])
	case what == "quorum" && len(args) == 1:
		return r.setQuorum(args[0])
	}
	return errors.New("it is none of: witness NAME VKEY [URL]; group NAME all|any|NUMBER NAME...; quorum NAME")
}

func (r *reader) witness(args []string) error {
	w, err := parseKey(args[1])
	if err != nil {
		return err
	}
	if len(args) == 3 {
		u, err := url.Parse(args[2])
		if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" {
			return fmt.Errorf("%q is not the URL of a witness, such as https://witness.example/prefix", args[2])
		}
		if u.Scheme == "http" && !local(u.Hostname()) { // anyone on the way could answer that there are two histories
			return fmt.Errorf("%q is neither https nor of this machine", args[2])
		}
		w.url = u.JoinPath("add-checkpoint").String()
	}
	if slices.ContainsFunc(r.witnesses, func(x witness) bool { return slices.Equal(x.key.Bytes, w.key.Bytes) }) {
		return errors.New("the key stands in a line before")
	}
	w.label = args[0]
	r.witnesses = append(r.witnesses, w)
	return r.name(w.label)
}

// local reports whether a host is this machine.
func local(host string) bool {
	return host == "localhost" || net.ParseIP(host).IsLoopback()
}

func (r *reader) group(name, need string, members []string) (err error) {
	g := group{name: name, members: members}
	switch need {
	case "all":
		g.need = len(members)
	case "any":
		g.need = 1
	default:
		if g.need, err = strconv.Atoi(need); err != nil || g.need < 1 || g.need > len(members) {
			return fmt.Errorf("%q is neither all, any nor a number from 1 to %d", need, len(members))
		}
	}
	for _, m := range members {
		switch free, known := r.free[m]; {
		case !known:
			return fmt.Errorf("no line before names %s", m)
		case !free:
			return fmt.Errorf("%s is a member already", m)
		}
		r.free[m] = false
	}
	r.groups = append(r.groups, g)
	return r.name(name)
}

func (r *reader) name(name string) error {
	if _, taken := r.free[name]; taken || name == none {
		return fmt.Errorf("the name %s is taken", name)
	}
	r.free[name] = true
	return nil
}

func (r *reader) setQuorum(name string) error {
	_, known := r.free[name]
	switch {
	case r.quorum != "":
		return errors.New("a second quorum")
	case !known && name != none:
		return fmt.Errorf("no line before names %s", name)
	}
	r.quorum = name
	return nil
}

// met reports whether the witnesses with these names are enough.
func (p *Policy) met(names []string) bool {
	signed := map[string]bool{none: true}
	for _, n := range names {
		signed[n] = true
	}
	for i := range p.groups {
		n := 0
		for _, m := range p.groups[i].members {
			if signed[m] {
				n++
			}
		}
		signed[p.groups[i].name] = n >= p.groups[i].need
	}
	return signed[p.quorum]
}

// Len is how many witnesses the policy names.
func (p *Policy) Len() int { return len(p.witnesses) }
