package scenario

import (
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/aweigh/aweigh/trust"
)

// ErrInvalid is wrapped by errors about scenarios that cannot be run.
var ErrInvalid = errors.New("sim: the scenario makes no sense")

// problem is what makes no sense, and where.
type problem struct {
	line int    // of the text; 0 if unknown
	path string // like cast[0].anchors[2]; "" for the whole
	text string
}

// Error implements error.
func (p *problem) Error() string {
	text := p.text
	if p.path != "" {
		text = p.path + ": " + text
	}
	if p.line > 0 {
		text = fmt.Sprintf("line %d: %s", p.line, text)
	}
	return ErrInvalid.Error() + ": " + text
}

// Unwrap is ErrInvalid.
func (p *problem) Unwrap() error { return ErrInvalid }

// The most that scenarios may ask for.
const (
	maxAnchors   = 4096
	maxObservers = 64
	maxTime      = 24 * time.Hour // of any duration
	maxClients   = 16             // requests at once: what fits an order is found by search
	maxRequests  = 1_000_000      // of a kind
	maxKeys      = 1_000_000
	maxValue     = 1 << 20
	maxWaiting   = 1 << 30
	maxTimed     = 1000
	maxRestarts  = 1000
	maxDrift     = 500_000 // parts per million
	maxSchedule  = 1 << 16 // bytes
)

// Check reports what makes no sense in the scenario with its defaults, wrapped
// in ErrInvalid with the path of the value. How much may lie is weighed when
// the scenario is run.
func (s Scenario) Check() error {
	s = s.WithDefaults()
	if err := s.checkNames(); err != nil {
		return err
	}
	var c checker
	c.text("name", s.Name, 64)
	c.text("about", s.About, 300)
	c.network(s.Network)
	c.links(s.Links)
	c.roles(s)
	c.faults(s)
	c.govern(s)
	c.load(s.Load, s.Stop)
	c.within("load.isles", s.Load.Isles, 0, maxRequests)
	c.need(s.Load.Isles == 0 || len(s.Network.Partitions) > 0, "load.isles", "no anchors found an island: say network.partitions")
	c.approval(s)
	c.waits(s)
	c.bounds(s)
	c.period("stop", s.Stop)
	_, bad := hex.DecodeString(s.Schedule)
	c.need(bad == nil && len(s.Schedule) <= 2*maxSchedule, "schedule", "is not hex of at most %d bytes", maxSchedule)
	c.outcome(s)
	return c.err()
}

// checkNames reports a name that stands for nothing.
func (s Scenario) checkNames() error {
	var c checker
	c.known("network.mode", s.Network.Mode, modes)
	c.known("network.guard", s.Network.Guard, guards)
	c.known("links.model", s.Links.Model, models)
	for i, r := range s.Links.Regions {
		c.name(fmt.Sprintf("links.regions[%d]", i), r, Regions)
	}
	attacks, kinds, invariants := names(Attacks), names(FaultKinds), names(Invariants)
	for i, m := range s.Govern {
		c.name(fmt.Sprintf("govern[%d].kind", i), m.Kind, names(motionKinds))
		c.known(fmt.Sprintf("govern[%d].guard", i), m.Guard, guards)
	}
	for i, r := range s.Roles {
		path := fmt.Sprintf("cast[%d]", i)
		for j, p := range r.Attacks {
			c.name(fmt.Sprintf("%s.play[%d]", path, j), p, attacks)
		}
		c.known(path+".weight", r.Weight, weights)
		c.known(path+".during", r.During, moments[:1])
	}
	for i, f := range s.Faults.Timed {
		path := fmt.Sprintf("faults.timed[%d]", i)
		c.known(path+".kind", f.Kind, kinds)
		c.known(path+".keep", f.Keep, keeps)
		c.known(path+".during", f.During, moments)
	}
	for i, e := range s.Expect {
		c.name(fmt.Sprintf("expect[%d]", i), e, invariants)
	}
	for i, g := range s.Shows {
		c.name(fmt.Sprintf("shows[%d]", i), g, names(Goals))
	}
	return c.err()
}

// leastEpoch is the least that a policy takes.
const leastEpoch = time.Second

var (
	modes   = []string{"bft", "crash", "fast"}
	models  = []string{"uniform", "constant", "lognormal", "regions"}
	weights = []string{"half", "budget", "over", "all"}
	keeps   = []string{"none", "some", "all"}
	moments = []string{DuringEnding, DuringHandover}
)

// guards are what of keys below guardedPrefix a policy can ask approval for.
var guards = []string{"deletions", "changes", "nothing"}

func names(all []Named) []string {
	list := make([]string, len(all))
	for i, n := range all {
		list[i] = n.Name
	}
	return list
}

// checker keeps the first problem found.
type checker struct{ first *problem }

func (c *checker) err() error {
	if c.first == nil {
		return nil
	}
	return c.first
}

func (c *checker) refuse(path, format string, args ...any) {
	if c.first == nil {
		c.first = &problem{path: path, text: fmt.Sprintf(format, args...)}
	}
}

// need refuses a path unless it holds.
func (c *checker) need(ok bool, path, format string, args ...any) {
	if !ok {
		c.refuse(path, format, args...)
	}
}

func (c *checker) known(path, name string, known []string) {
	if name != "" {
		c.name(path, name, known)
	}
}

func (c *checker) name(path, name string, known []string) {
	c.need(slices.Contains(known, name), path, "%s", unknown(name, known))
}

func (c *checker) within(path string, n, least, most int) {
	c.need(least <= n && n <= most, path, "%d is not within %d and %d", n, least, most)
}

func (c *checker) period(path string, d time.Duration) {
	c.need(0 <= d && d <= maxTime, path, "%v is not within 0s and %v", d, maxTime)
}

func (c *checker) share(path string, s Share) {
	c.need(s <= Whole, path, "%d millionths are more than the whole", uint32(s))
}

func (c *checker) text(path, text string, most int) {
	c.need(utf8.ValidString(text) && utf8.RuneCountInString(text) <= most && !slices.ContainsFunc([]rune(text), func(r rune) bool { return !unicode.IsPrint(r) }),
		path, "%.40q is not one line of at most %d letters", text, most)
}

// numbers holds a list of nodes against those there are, and refuses one named twice.
func (c *checker) numbers(path string, list []int, there int, what string) {
	for i, n := range list {
		at := fmt.Sprintf("%s[%d]", path, i)
		c.need(0 <= n && n < there, at, "there is no %s %d; there are %d, from 0", what, n, there)
		c.need(!slices.Contains(list[:i], n), at, "%s %d is there twice", what, n)
	}
}

func (c *checker) network(n Network) {
	if _, err := (&Scenario{Network: n}).Authors(); err != nil {
		c.refuse("network.authors", "%v", err)
	}
	if len(n.When) > len(rules) {
		c.refuse("network.when", "has %d predicates, more than %d", len(n.When), len(rules))
	} else if err := (&Scenario{Network: n}).Rules().Check(); err != nil {
		c.refuse("network.when", "%v", err)
	}
	if _, err := (&Scenario{Network: n}).Partitions(); err != nil {
		c.refuse("network.partitions", "%v", err)
	}
	c.group("network.group", &Scenario{Network: n}, n.Group)
	c.within("network.anchors", n.Anchors, 1, maxAnchors)
	c.within("network.observers", n.Observers, 0, maxObservers)
	c.need(len(n.Trust) <= maxAnchors, "network.trust", "has %d shares, more than %d", len(n.Trust), maxAnchors)
	for i, t := range n.Trust {
		c.share(fmt.Sprintf("network.trust[%d]", i), t)
	}
	c.share("network.finalize", n.Finalize)
	if least := n.least(); n.Finalize != 0 {
		c.need(n.Finalize >= least, "network.finalize", "%v is below %v, which mode %s asks for", n.Finalize, least, n.Mode)
	}
	c.within("network.epochblocks", n.EpochBlocks, 1, 1_000_000_000)
	c.need(n.EpochTime >= leastEpoch, "network.epochtime", "%v is less than a second", n.EpochTime)
	c.within("network.whole", n.Whole, 1, 1_000_000)
	c.within("network.judged", n.Judged, 1, 1_000_000)
	c.within("network.reversal", n.Reversal, 1, trust.MaxReversal)
	c.within("network.welcome", n.Welcome, 0, maxObservers)
	c.period("network.notice", n.Notice)
	c.need(n.Notice == 0 || n.Notice >= time.Second, "network.notice", "%v is less than a second", n.Notice)
	c.period("network.timing.view", n.Timing.View)
	c.period("network.timing.maxview", n.Timing.MaxView)
	c.period("network.timing.offer", n.Timing.Offer)
	c.period("network.timing.settle", n.Timing.Settle)
	c.need(n.Timing.MaxView >= n.Timing.View, "network.timing.maxview", "%v is less than view, %v", n.Timing.MaxView, n.Timing.View)
}

// least is the share that every finalization exceeds, rounded down.
func (n Network) least() Share {
	if n.Mode == "crash" {
		return Whole / 2
	}
	return Whole * 2 / 3
}

func (c *checker) links(l Links) {
	c.period("links.delay", l.Delay)
	c.period("links.spread", l.Spread)
	c.period("links.most", l.Most)
	c.need(l.Delay == 0 || l.Model != "regions", "links.delay", "the model regions has its own")
	c.need(l.Spread == 0 || l.Model == "uniform" || l.Model == "lognormal", "links.spread", "the model %s has none", l.Model)
	c.need(len(l.Regions) == 0 || l.Model == "regions", "links.regions", "the model %s has none; say model: regions", l.Model)
	c.need(len(l.Regions) <= maxAnchors, "links.regions", "has %d names, more than %d", len(l.Regions), maxAnchors)
}

func (c *checker) load(l Load, stop time.Duration) {
	c.within("load.bursts", l.Bursts, 0, maxTimed)
	c.need(l.Bursts != 1, "load.bursts", "a burst follows on another: say 2 or more, or leave it out")
	c.need(l.Bursts < 2 || stop >= 2*Burst*time.Duration(l.Bursts), "load.bursts", "%d bursts of %v do not fit within %v", l.Bursts, Burst, stop)
	c.within("load.clients", l.Clients, 1, maxClients)
	c.within("load.writes", l.Writes, 1, maxRequests)
	c.within("load.reads", l.Reads, 1, maxRequests)
	c.within("load.probes", l.Probes, 0, maxRequests)
	c.within("load.names", l.Names, 0, maxRequests)
	c.within("load.dear", l.Dear, 0, maxRequests)
	c.within("load.programs", l.Programs, 0, maxRequests)
	c.within("load.acts", l.Acts, 0, maxRequests)
	c.within("load.visits", l.Visits, 0, maxRequests)
	c.within("load.verified", l.Verified, 0, maxRequests)
	c.within("load.keys", l.Keys, 1, maxKeys)
	c.within("load.leases", l.Leases, 0, maxClients)
	c.within("load.value", l.Value, 1, maxValue)
	c.share("load.swap", l.Swap)
	c.period("load.give", l.Give)
}

// outcome checks that the demands of a scenario at its end do not contradict each other.
func (c *checker) outcome(s Scenario) {
	for i, e := range s.Expect {
		c.need(!slices.Contains(s.Expect[:i], e), fmt.Sprintf("expect[%d]", i), "%q is there twice", e)
	}
	for i, g := range s.Shows {
		c.need(!slices.Contains(s.Shows[:i], g), fmt.Sprintf("shows[%d]", i), "%q is there twice", g)
		c.need(g != "healed" || s.Heal != nil, fmt.Sprintf("shows[%d]", i), "nothing heals: say heal")
	}
	if len(s.Expect) > 0 {
		c.need(len(s.Roles) > 0 || s.LyingDisk(), "expect", "nothing may break, since no anchor and no disk lies")
		c.need(s.Heal == nil, "expect", "expect and heal: a network whose promise is broken has nothing to come back to")
	}
	if s.Heal != nil {
		c.period("heal.within", s.Heal.Within)
		c.need(s.liars() < s.Network.Anchors, "heal", "no honest anchor is left to heal")
	}
}

// liars is how many anchors lie at least.
func (s Scenario) liars() (n int) {
	for _, r := range s.Roles {
		switch {
		case r.In != "": // honest in the root scope
		case r.Weight == "over":
			n++
		default:
			n += r.Count
			for _, a := range r.Anchors {
				if a < s.Network.Anchors {
					n++
				}
			}
		}
	}
	return n
}

// alone are the attacks that run a machine of their own on an anchor's key.
var alone = []string{"twins", "fork", "amnesia"}

func (c *checker) roles(s Scenario) {
	anchors, liars := s.Network.Anchors, 0
	taken := make(map[int]int) // anchors, to the role that names them
	weighed, most := -1, ""    // the last role by weight, and its
	for i, r := range s.Roles {
		path := fmt.Sprintf("cast[%d]", i)
		c.attacks(path+".play", r.Attacks)
		ways := 0
		for _, given := range []bool{len(r.Anchors) > 0, r.Count != 0, r.Weight != ""} {
			if given {
				ways++
			}
		}
		c.need(ways == 1, path, "a role names its liars in one way: anchors, count or weight; here are %d", ways)
		what := "anchor"
		if s.Network.Observers > 0 {
			what = "node"
		}
		c.numbers(path+".anchors", r.Anchors, anchors+s.Network.Observers, what)
		c.need(r.Weight != "all" || r.In != "", path+".weight", "all of a scope may lie, but not of the whole network: say in")
		if r.In != "" {
			c.inScope(path, s, r)
			continue
		}
		for j, a := range r.Anchors {
			other, twice := taken[a]
			c.need(!twice, fmt.Sprintf("%s.anchors[%d]", path, j), "anchor %d lies in cast[%d] already", a, other)
			taken[a] = i
		}
		c.need(r.Count >= 0, path+".count", "%d is less than 1", r.Count)
		lie := len(r.Anchors) + r.Count
		for _, a := range r.Anchors {
			if a >= anchors { // an identity in reserve
				lie--
			}
		}
		c.need(lie <= anchors, path, "%d liars, but the network has %d anchors", lie, anchors)
		liars += lie
		c.need(liars <= anchors, path, "with it %d anchors lie, but the network has %d", liars, anchors)
		if r.Weight != "" {
			left := weighed < 0 || slices.Index(weights, r.Weight) > slices.Index(weights, most) || most == "half"
			c.need(left, path+".weight", "cast[%d] takes all that is left, as its weight is %q", weighed, most)
			weighed, most = i, r.Weight
		}
		c.numbers(path+".victims", r.Victims, anchors, "anchor")
		for j, v := range r.Victims {
			c.need(!slices.Contains(r.Anchors, v), fmt.Sprintf("%s.victims[%d]", path, j), "anchor %d lies in this role itself", v)
		}
		c.period(path+".from", r.From)
		c.period(path+".until", r.Until)
		c.period(path+".every", r.Every)
		c.need(r.Until == 0 || r.From < r.Until, path+".until", "%v is not after from, %v", r.Until, r.From)
		c.share(path+".rate", r.Rate)
		c.share(path+".above", r.Above)
	}
}

func (c *checker) attacks(path string, attacks []string) {
	c.need(len(attacks) > 0, path, "is missing: a role has at least one attack")
	single := ""
	for i, p := range attacks {
		at := fmt.Sprintf("%s[%d]", path, i)
		c.need(!slices.Contains(attacks[:i], p), at, "%q is there twice", p)
		if slices.Contains(alone, p) {
			c.need(single == "", at, "%q and %q do not go together: make them two roles", single, p)
			single = p
		}
	}
}

func (c *checker) faults(s Scenario) {
	f := s.Faults
	c.share("faults.loss", f.Loss)
	c.share("faults.duplicate", f.Duplicate)
	c.share("faults.reorder", f.Reorder)
	c.share("faults.crash", f.Crash)
	c.need(len(f.Timed) <= maxTimed, "faults.timed", "has %d faults, more than %d", len(f.Timed), maxTimed)
	for i, t := range f.Timed {
		path := fmt.Sprintf("faults.timed[%d]", i)
		c.need(t.Kind != "", path+".kind", "is missing")
		c.period(path+".at", t.At)
		c.need(t.At < s.Stop, path+".at", "%v is not before stop, %v", t.At, s.Stop)
		c.period(path+".for", t.For)
		c.fault(path, t, s.Network.Anchors+s.Network.Observers)
	}
}

// fault checks the fields of a fault, and that they fit its kind.
func (c *checker) fault(path string, f Fault, nodes int) {
	only := func(given bool, key string, kinds ...string) {
		c.need(!given || slices.Contains(kinds, f.Kind), path+"."+key, "a fault of kind %s has none", f.Kind)
	}
	parts := f.Kind == "partition"
	only(len(f.Groups) > 0, "groups", "partition")
	only(f.OneWay, "oneway", "partition")
	only(f.Rate != 0, "rate", "drift", "churn", "lag")
	only(f.Keep != "", "keep", "crash")
	c.need(!parts || len(f.Nodes) == 0, path+".nodes", "a partition has sides: say groups: [[...], [...]]")
	c.need(!parts || len(f.Groups) > 0, path+".groups", "is missing: a partition has sides")
	c.numbers(path+".nodes", f.Nodes, nodes, "node")

	side := make(map[int]int)
	for i, g := range f.Groups {
		at := fmt.Sprintf("%s.groups[%d]", path, i)
		c.need(len(g) > 0, at, "has no nodes")
		c.need(len(g) < nodes, at, "a side with all nodes parts none")
		c.numbers(at, g, nodes, "node")
		for j, n := range g {
			other, twice := side[n]
			c.need(!twice || other == i, fmt.Sprintf("%s[%d]", at, j), "node %d is in groups[%d] already", n, other)
			side[n] = i
		}
	}

	switch f.Kind {
	case "slow":
		c.period(path+".by", f.By)
	case "ahead", "firsthand":
		c.period(path+".by", f.By)
	case "lag":
		c.period(path+".by", f.By)
		c.need(0 <= f.Rate && f.Rate <= maxRestarts, path+".rate", "%d restarts is not within 0 and %d", f.Rate, maxRestarts)
	case "offset", "step":
		c.need(-maxTime <= f.By && f.By <= maxTime, path+".by", "%v is not within %v and %v", f.By, -maxTime, maxTime)
	case "drift":
		c.need(f.Rate != 0 && -maxDrift <= f.Rate && f.Rate <= maxDrift, path+".rate", "%d parts per million is not within -%d and %d, without 0", f.Rate, maxDrift, maxDrift)
	case "churn":
		c.need(1 <= f.Rate && f.Rate <= maxRestarts, path+".rate", "%d restarts is not within 1 and %d", f.Rate, maxRestarts)
	}
}
