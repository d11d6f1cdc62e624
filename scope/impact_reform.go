package scope

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/trust"
)

// Reform is what a decision would change of a scope's government, if the epoch ended now with it and with what is
// decided already.
type Reform struct {
	_         struct{}     `cbor:",toarray"`
	Seats     []Seat       // anchors whose weight would be another, by their IDs: the first of them
	Reseated  int64        // how many these are
	Anchors   int64        // that would have a seat
	Was, Is   FewestToFail // now, and then
	Stoppable bool         // the weight that may fail could stop the scope then (P3)
	Asks      []Asked      // approvals that change: the first of them
	Asked     int64        // how many these are
	Flips     []Flip       // rights that change: the first of them
	Flipped   int64        // how many these are
	Untold    bool         // there are more changes of authors than were looked at, so Flipped may be more
	Goes      *Handed      // what goes to the scope that is founded
}

// Seat is the weight of one anchor, now and then; 0: none.
type Seat struct {
	_      struct{} `cbor:",toarray"`
	Anchor aweigh.AnchorID
	Name   string
	Was    uint64
	Is     uint64
}

// Asked is an approval of the policy, now and then; "": none.
type Asked struct {
	_   struct{} `cbor:",toarray"`
	Of  string   // like: changes below "/secrets/"
	Was string
	Is  string
}

// Flip is a verdict that changes.
type Flip struct {
	_      struct{} `cbor:",toarray"`
	Who    string   // the name of an entry of authors, "anchors" or "any"; "": the callers that the rule of the verb is about
	Verb   string
	Prefix []byte // all keys with it; none: all keys
	May    bool   // it may then, and may not now; or the other way round
	Rule   string // of a verb whose rule changes: the new one, "" for none
}

// Handed is what goes to another scope.
type Handed struct {
	_      struct{} `cbor:",toarray"`
	Keys   int64
	Bytes  int64 // of keys and values
	Leases int64
	Whole  bool // it was counted to its end
}

// FewestToFail holds the smallest numbers of anchors that could do harm; one more than there are if all together could
// not.
type FewestToFail struct {
	_     struct{} `cbor:",toarray"`
	Stop  int      // could stop the scope
	Break int      // could, lying together, make it finalize two histories
}

// Fewest returns how few anchors with weights could do harm under rules.
func Fewest(r quorum.Rules, w quorum.Weights) FewestToFail {
	total := w.Total()
	most, heads := uint64(0), uint32(0)
	for _, k := range []quorum.Kind{quorum.Notarize, quorum.Finalize, quorum.Nullify} {
		most, heads = max(most, r.For(k).Threshold(total)), max(heads, r.For(k).MinAnchors)
	}
	stop := trust.Fewest(w, total-most+1)
	if heads > 0 {
		stop = min(stop, w.Len()-int(heads)+1)
	}
	n, f, s := r.Notarize.Threshold(total), r.Finalize.Threshold(total), r.Nullify.Threshold(total)
	lie := min(2*n, f+s) - total
	if fast := r.FastBounds(w); fast.Final > 0 { // P56 to P58
		stop, lie = min(stop, trust.Fewest(w, total-fast.Leave+1)), min(lie, fast.Lying+1)
	}
	return FewestToFail{Stop: stop, Break: trust.Fewest(w, lie)}
}

// Bounds of what a Reform lists, and of the work that it takes.
const (
	maxSeats       = 32
	maxAsked       = 16
	maxFlips       = 32
	maxReformText  = 200     // bytes of a text
	maxFlipQueries = 1 << 14 // rights of one author to one verb on one prefix
)

// impactOfDecision is what a decision would change that was found admissible.
func (x *execution) impactOfDecision(d *Decision) (*Impact, error) {
	r := new(Reform)
	if d.Kind == Delegate {
		r.Goes = x.government.goes
	}
	policy := *x.policy
	for i := range x.government.carried {
		if c := &x.government.carried[i].Decision; c.Kind == SetPolicy {
			policy = *c.Policy
		}
	}
	if d.Kind == SetPolicy {
		r.amends(x.epoch, &policy, d.Policy)
		policy = *d.Policy
	}
	s := x.next
	then := append(slices.Clip(x.government.carried), decided{Decision: *d, Carried: x.block.Header.Height})
	s.pending = &then
	u, err := s.successor()
	if err != nil {
		return nil, err
	}
	next, err := u.terms.roster()
	if err != nil {
		return nil, err
	}
	r.seats(x.epoch, &policy, next)
	small, err := u.settledWeights(&policy, x.epoch.Number+1)
	if err == nil && small.Len() > 0 {
		few := Fewest(policy.Rules, small)
		r.Is = FewestToFail{Stop: min(r.Is.Stop, few.Stop), Break: min(r.Is.Break, few.Break)}
	}
	return &Impact{Reform: r}, nil
}

// foresee finds out what a decision would change, if it is admissible.
func (x *execution) foresee(d *Decision) (failure, err error) {
	if failure, err = x.admissible(d); failure == nil && err == nil {
		x.impact, err = x.impactOfDecision(d)
	}
	return failure, err
}

// seats fills in the roster that would follow.
func (r *Reform) seats(now *Epoch, policy *Policy, next Roster) *Reform {
	all := slices.Clone(now.Roster.Anchors)
	for _, a := range next.Anchors {
		if _, seated := now.Roster.Seat(a.Key.ID()); !seated {
			all = append(all, a)
		}
	}
	slices.SortFunc(all, compareIDs)
	for i := range all {
		id := all[i].Key.ID()
		s := Seat{Anchor: id, Name: all[i].Name, Was: now.Roster.Weights.Of(id), Is: next.Weights.Of(id)}
		if s.Was == s.Is {
			continue
		}
		if r.Reseated++; len(r.Seats) < maxSeats {
			r.Seats = append(r.Seats, s)
		}
	}
	r.Anchors = int64(len(next.Anchors))
	r.Was, r.Is = Fewest(now.Policy.Rules, now.Roster.Weights), Fewest(policy.Rules, next.Weights)
	r.Stoppable, _ = policy.Rules.Check(next.Weights)
	return r
}

// amends fills in what another policy asks for, and permits.
func (r *Reform) amends(e *Epoch, old, p *Policy) {
	find := func(in *Policy, a *Approval) *Approval {
		for i := range in.Approvals {
			if b := &in.Approvals[i]; b.Matter == a.Matter && bytes.Equal(b.Prefix, a.Prefix) && slices.Equal(b.Verbs, a.Verbs) {
				return b
			}
		}
		return nil
	}
	ask := func(of, was, is *Approval) {
		if was != nil && is != nil && bytes.Equal(canon.Encode(*was), canon.Encode(*is)) {
			return
		}
		x := Asked{Of: short(of.name())}
		if was != nil {
			x.Was = short(strings.TrimPrefix(was.String(), was.name()+": "))
		}
		if is != nil {
			x.Is = short(strings.TrimPrefix(is.String(), is.name()+": "))
		}
		if r.Asked++; len(r.Asks) < maxAsked {
			r.Asks = append(r.Asks, x)
		}
	}
	for i := range old.Approvals {
		ask(&old.Approvals[i], &old.Approvals[i], find(p, &old.Approvals[i]))
	}
	for i := range p.Approvals {
		if a := &p.Approvals[i]; find(old, a) == nil {
			ask(a, nil, a)
		}
	}
	for _, verb := range verbsOf(old, p) {
		was, had := old.Actions.Find(verb)
		if is, has := p.Actions.Find(verb); was != is || had != has {
			f := Flip{Verb: verb, May: has}
			if has {
				f.Rule = short(is.String())
			}
			r.flip(f)
		}
	}
	r.authors(e, old, p)
}

func (r *Reform) flip(f Flip) {
	if r.Flipped++; len(r.Flips) < maxFlips {
		r.Flips = append(r.Flips, f)
	}
}

// verbsOf are the verbs of the actions of two policies, in order.
func verbsOf(a, b *Policy) (all []string) {
	for _, p := range []*Policy{a, b} {
		for _, rule := range p.Actions {
			all = append(all, rule.Verb)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// authors compares what the entries of two policies that differ permit to those that they are about.
func (r *Reform) authors(e *Epoch, old, p *Policy) {
	verbs := append(slices.Clone(AuthorVerbs), verbsOf(old, p)...)
	seen := make(map[string]bool)
	left := maxFlipQueries
	for _, a := range changedAuthors(old, p) {
		may := func(in *Policy) func(verb string, prefix []byte) bool { return in.permitsOf(e, a) }
		was, is := may(old), may(p)
		of, places := a.Verbs, a.Prefixes
		if len(of) == 0 {
			of = verbs
		}
		if len(places) == 0 {
			places = [][]byte{nil}
		}
		who := a.Who.String()
		if a.Who == OneKey || a.Who == OnList {
			who = a.Name
		}
		for _, verb := range of {
			for _, prefix := range places {
				if left--; left < 0 {
					r.Untold = true
					return
				}
				id := fmt.Sprintf("%d %s %q %s %q", a.Who, a.Key.ID(), a.List, verb, prefix)
				if now := is(verb, prefix); !seen[id] && now != was(verb, prefix) {
					r.flip(Flip{Who: who, Verb: verb, Prefix: prefix, May: now})
				}
				seen[id] = true
			}
		}
	}
}

// changedAuthors are the entries of two policies that the other one has not, by their names.
func changedAuthors(old, p *Policy) (all []*Author) {
	for _, in := range [][2]*Policy{{old, p}, {p, old}} {
		for i := range in[0].Authors {
			a := &in[0].Authors[i]
			same := func(b Author) bool {
				return a.Who == b.Who && a.Key.ID() == b.Key.ID() && bytes.Equal(a.List, b.List) && slices.Equal(a.Verbs, b.Verbs) &&
					slices.EqualFunc(a.Prefixes, b.Prefixes, bytes.Equal)
			}
			if n, found := slices.BinarySearchFunc(in[1].Authors, a.Name, func(b Author, name string) int { return cmp.Compare(b.Name, name) }); !found || !same(in[1].Authors[n]) {
				all = append(all, a)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b *Author) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// permitsOf tells what a policy permits, on all keys with a prefix, to those that an entry of some policy is about.
func (p *Policy) permitsOf(e *Epoch, who *Author) func(verb string, prefix []byte) bool {
	var about []*Author
	id := who.Key.ID()
	for i := range p.Authors {
		switch a := &p.Authors[i]; {
		case a.Who == Anyone,
			a.Who == Anchors && (who.Who == Anchors || who.Who == OneKey && e.IsAnchor(id)),
			a.Who == OneKey && who.Who == OneKey && a.Key.ID() == id,
			a.Who == OnList && who.Who == OnList && bytes.Equal(a.List, who.List):
			about = append(about, a)
		}
	}
	return func(verb string, prefix []byte) bool {
		key, end := prefix, PrefixEnd(prefix)
		if len(prefix) == 0 {
			key, end = []byte{0}, []byte{0}
		}
		return slices.ContainsFunc(about, func(a *Author) bool {
			if OfNoKey(verb) {
				return a.Permits(verb, nil)
			}
			return a.permits(verb, key, end)
		})
	}
}

// short cuts a text to what a report has room for.
func short(text string) string {
	if len(text) <= maxReformText {
		return text
	}
	n := maxReformText
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n] + "…"
}

// sum counts what is handed over.
func (h *handover) sum(whole bool) *Handed {
	out := &Handed{Keys: int64(len(h.keys)), Leases: int64(len(h.order)), Whole: whole}
	for i := range h.keys {
		out.Bytes += h.keys[i].size()
	}
	return out
}
