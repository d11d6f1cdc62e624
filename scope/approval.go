package scope

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/plain"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/votes"
)

// Matter is the kind of change that requires an Approval.
type Matter uint8

const (
	// Changes are puts and deletions of keys.
	Changes Matter = 1
	// Deletions are deletions of keys alone.
	Deletions Matter = 2
	// Policies are decisions on the policy.
	Policies Matter = 3
	// Membership are decisions to admit or evict an anchor.
	Membership Matter = 4
)

// String is the matter in lower case.
func (m Matter) String() string {
	switch m {
	case Changes:
		return "changes"
	case Deletions:
		return "deletions"
	case Policies:
		return "policies"
	case Membership:
		return "membership"
	}
	return fmt.Sprintf("matter(%d)", uint8(m))
}

// Approval is a requirement of a policy beyond consensus: mutations that touch keys
// with the prefix open a motion instead of applying (P28). Decisions are motions in
// any case, and an approval can only require more than finalization does.
type Approval struct {
	_         struct{} `cbor:",toarray"`
	Matter    Matter
	Prefix    []byte        // of the keys; none: all keys
	Num, Den  uint32        // the share of the whole weight that must approve, at least
	Anchors   uint32        // and how many anchors, at least
	Window    time.Duration // how long a motion stays open, by the blocks' time: its deadline is Opened + Window; mostWindow at most
	Approvers []Approver
	StepUp    bool          // of keys: one approver that did not ask for the change decides, and anchors have no vote
	Verbs     []string      // of actions alone that these verbs ask for, in order; none: of every change
	Bounds    []ImpactBound // of what one motion may change, in the order of their measures

	// Of decisions, as they open, and zero in a policy:
	Finalize quorum.Rule     // what finalizes, which they need in any case
	Sponsor  aweigh.AnchorID // of an admission: the anchor that must approve
}

// Approver is a key that votes on motions beside the anchors: a person's, or a program's.
type Approver struct {
	_        struct{} `cbor:",toarray"`
	Name     string
	Key      votes.PublicKey
	Share    uint32 // weight, in millionths of that of all anchors together
	Required bool   // nothing is carried without this one
}

// Bounds of a policy's approvals.
const (
	maxApprovals   = 64
	maxApprovers   = 64 // of one approval
	maxShare       = 10_000_000
	leastWindow    = time.Second
	mostStepUp     = time.Hour // the window of a step-up, for which the author waits
	mostWindow     = 366 * 24 * time.Hour
	maxApprovalDen = 1_000_000
)

// String is like "changes below /secrets/: at least 3/4 of the weight, 3 anchors, within 72h0m0s".
func (a *Approval) String() string {
	s := a.name() + ": "
	switch {
	case a.StepUp:
		return s + fmt.Sprintf("a second person: %s, within %v", a.seconds(), a.Window) + a.bounds()
	case a.Num == 0 && a.Finalize.Den > 0:
		s += a.Finalize.String() + " of the weight, as to finalize"
	case a.Finalize.Den > 0:
		s += fmt.Sprintf("at least %d/%d of the weight, and %s, as to finalize", a.Num, a.Den, a.Finalize)
	default:
		s += fmt.Sprintf("at least %d/%d of the weight", a.Num, a.Den)
	}
	switch {
	case a.Anchors == 1:
		s += ", 1 anchor"
	case a.Anchors > 1:
		s += fmt.Sprintf(", %d anchors", a.Anchors)
	}
	if !a.Sponsor.IsZero() {
		s += ", the sponsor"
	}
	for _, p := range a.Approvers {
		if p.Required {
			s += ", " + p.Name
		}
	}
	return s + fmt.Sprintf(", within %v", a.Window) + a.bounds()
}

// bounds is like "; at most 10 keys that change".
func (a *Approval) bounds() (s string) {
	for i, b := range a.Bounds {
		s += [...]string{"; ", ", "}[min(i, 1)] + b.String()
	}
	return s
}

// seconds are the names of the approvers of a step-up: "bob or carol".
func (a *Approval) seconds() string {
	names := make([]string, len(a.Approvers))
	for i := range a.Approvers {
		names[i] = a.Approvers[i].Name
	}
	return strings.Join(names, " or ")
}

// ofKeys reports whether it is about keys, and not about decisions.
func (a *Approval) ofKeys() bool { return a.Matter == Changes || a.Matter == Deletions }

// name is like "changes below /secrets/".
func (a *Approval) name() string {
	if !a.ofKeys() {
		return a.Matter.String()
	}
	return fmt.Sprintf("%s below %q", a.ofVerbs(), a.Prefix)
}

// checkApprovals reports whether a policy can have its approvals, whatever the roster.
func (p *Policy) checkApprovals() error {
	if len(p.Approvals) > maxApprovals {
		return fmt.Errorf("%w: %d approvals, at most %d are taken", ErrInvalid, len(p.Approvals), maxApprovals)
	}
	for i := range p.Approvals {
		a := &p.Approvals[i]
		err := a.check()
		if err == nil {
			err = p.Limits.outlasts("motions that are open for", a.Window)
		}
		if err == nil {
			err = p.verbsOf(a)
		}
		if err != nil {
			return fmt.Errorf("%w: approval of %s: %w", ErrInvalid, a.name(), err)
		}
		if len(a.Prefix) > p.Limits.KeyBytes {
			return fmt.Errorf("%w: approval for a prefix of %d bytes, keys have at most %d", ErrInvalid, len(a.Prefix), p.Limits.KeyBytes)
		}
		for j := range i {
			if b := &p.Approvals[j]; a.Matter == b.Matter && bytes.Equal(a.Prefix, b.Prefix) && a.shares(b) {
				return fmt.Errorf("%w: two approvals of %s", ErrInvalid, a.name())
			}
		}
	}
	return nil
}

func (a *Approval) check() error {
	switch {
	case a.Matter < Changes || a.Matter > Membership:
		return fmt.Errorf("no such matter %d", uint8(a.Matter))
	case !a.ofKeys() && len(a.Prefix) > 0:
		return errors.New("decisions have no prefix")
	case a.Finalize != (quorum.Rule{}) || !a.Sponsor.IsZero():
		return errors.New("what an opening fills in stands in a policy")
	case a.StepUp && (!a.ofKeys() || len(a.Approvers) == 0):
		return errors.New("a step-up is about changes or deletions of keys, and names at least one approver")
	case a.StepUp && (a.Num != 0 || a.Den != 1 || a.Anchors > 0):
		return errors.New("anchors have no vote on a step-up: its share is 0/1, of no anchors")
	case a.StepUp && a.Window > mostStepUp:
		return fmt.Errorf("the author of a step-up waits for it, for %v at most, and not for %v", mostStepUp, a.Window)
	case a.Den == 0 || a.Den > maxApprovalDen || a.Num > a.Den:
		return fmt.Errorf("%d/%d is not a share between 0 and 1 with a denominator up to %d", a.Num, a.Den, maxApprovalDen)
	case a.Window < leastWindow || a.Window > mostWindow:
		return fmt.Errorf("a window of %v; it is from %v to %v", a.Window, leastWindow, mostWindow)
	case len(a.Approvers) > maxApprovers:
		return fmt.Errorf("%d approvers, at most %d are taken", len(a.Approvers), maxApprovers)
	}
	if err := cmp.Or(a.checkVerbs(), a.checkBounds()); err != nil {
		return err
	}
	seen, names := make(map[aweigh.Hash]bool), make(map[string]bool)
	for i := range a.Approvers {
		p := &a.Approvers[i]
		if _, err := p.Key.Algorithm(); err != nil {
			return fmt.Errorf("approver %q: %w", p.Name, err)
		}
		if _, err := votes.NewKeySet(p.Key); err != nil {
			return fmt.Errorf("approver %q: %w", p.Name, err)
		}
		switch id := p.Key.ID(); {
		case len(p.Name) == 0 || len(p.Name) > maxAnchorName:
			return fmt.Errorf("an approver needs a name of 1 to %d bytes", maxAnchorName)
		case plain.Name(p.Name) != nil:
			return fmt.Errorf("an approver: %w", plain.Name(p.Name))
		case !a.ofKeys() && (p.Share > 0 || !p.Required):
			return fmt.Errorf("approver %q of decisions must be required, and has no weight: what finalizes is the anchors' alone", p.Name)
		case a.StepUp && (p.Share > 0 || p.Required):
			return fmt.Errorf("approver %q of a step-up has a weight or is required; any one of a step-up's approvers decides", p.Name)
		case !a.StepUp && p.Share == 0 && !p.Required || p.Share > maxShare:
			return fmt.Errorf("approver %q has a weight of %d.%04d%% of the anchors', and need not sign; more than 0%% and at most %d%% is taken", p.Name, p.Share/10_000, p.Share%10_000, maxShare/10_000)
		case seen[id]:
			return fmt.Errorf("the key of approver %q stands twice", p.Name)
		case names[p.Name]:
			return fmt.Errorf("two approvers are called %q", p.Name)
		default:
			seen[id], names[p.Name] = true, true
		}
	}
	return nil
}

// voters returns the voters on a motion that opens under a roster, for a mutation that some keys asked for (askers).
// Approvers that are void are none.
func (a *Approval) voters(r Roster, askers, void []aweigh.Hash) []Elector {
	var all []Elector
	if a.StepUp {
		for _, p := range a.Seconds(slices.Concat(askers, void)) {
			all = append(all, Elector{Name: p.Name, Key: p.Key, Weight: 1})
		}
		return all
	}
	for i := range r.Anchors {
		if w := r.Weights.Of(r.Anchors[i].Key.ID()); w > 0 {
			all = append(all, Elector{Name: r.Anchors[i].Name, Key: r.Anchors[i].Key, Weight: w, Anchor: true})
		}
	}
	for i := range a.Approvers {
		p := &a.Approvers[i]
		if slices.Contains(void, p.Key.ID()) {
			continue
		}
		w := r.Weights.Total() * uint64(p.Share) / 1_000_000
		all = append(all, Elector{Name: p.Name, Key: p.Key, Weight: w, Required: p.Required || w == 0})
	}
	seat, ok := r.Seat(a.Sponsor)
	ok = ok && !slices.ContainsFunc(a.Approvers, func(p Approver) bool { return p.Key.ID() == a.Sponsor }) // required already
	if ok {
		all = append(all, Elector{Name: r.Anchors[seat].Name, Key: r.Anchors[seat].Key, Required: true})
	}
	return all
}

// Seconds are the approvers of a step-up that may be the second person for what some keys ask for.
func (a *Approval) Seconds(askers []aweigh.Hash) (all []Approver) {
	for _, p := range a.Approvers {
		if !slices.Contains(askers, p.Key.ID()) {
			all = append(all, p)
		}
	}
	return all
}

// askers are the keys that ask for a mutation: those of its author, of its grants' signers and holders, and both keys
// of each anchor among these. None of them is a second person.
func (m *CheckedMutation) askers(r Roster) []aweigh.Hash {
	all := []aweigh.Hash{m.Author}
	for i := range m.grants {
		all = append(all, m.grants[i].By.ID(), m.grants[i].To.ID())
	}
	for i := range r.Anchors {
		a := &r.Anchors[i]
		keys := []aweigh.Hash{a.Key.ID()}
		if node, ok := PeerKey(a.Peer); ok {
			keys = append(keys, node.ID())
		}
		if slices.ContainsFunc(keys, func(key aweigh.Hash) bool { return slices.Contains(all, key) }) {
			all = append(all, keys...)
		}
	}
	return all
}

// rule is the rule that carries a motion among voters of a total weight, besides whom approvers of the weight lost are
// void: exactly the share of the whole, and for decisions no less than finalizes.
func (a *Approval) rule(total, lost uint64) quorum.Rule {
	need := uint64(1)
	if a.Den > 0 {
		need = max(need, ((total+lost)*uint64(a.Num)+uint64(a.Den)-1)/uint64(a.Den))
	}
	if a.Finalize.Den > 0 {
		need = max(need, a.Finalize.Threshold(total))
	}
	return quorum.Rule{Num: need - 1, Den: total, MinAnchors: max(a.Anchors, a.Finalize.MinAnchors)}
}

// carriable reports why motions under an approval could never be carried under a roster.
func (a *Approval) carriable(r Roster) error {
	e, err := electorate(a.voters(r, nil, nil))
	if err != nil {
		return fmt.Errorf("%w: approval of %s: %w", ErrInvalid, a.name(), err)
	}
	if !e.Carriable(a.rule(e.Total(), 0)) {
		have := "have"
		if r.Weights.Len() == 1 {
			have = "has"
		}
		return fmt.Errorf("%w: approval of %s asks for more than all voters together can give: %s %s weight", ErrInvalid, a.name(), counted(r.Weights.Len(), "anchor"), have)
	}
	return nil
}

// ErrManyApprovals refuses a mutation that needs two approvals.
var ErrManyApprovals = errors.New("scope: it takes several approvals of the policy at once, of several keys; send one mutation for each")

// ErrNoSecond refuses a mutation that takes a second person, if each one that the policy names asks for it.
var ErrNoSecond = errors.New("scope: the policy asks for the approval of a second person, and names none but the author, or a key that granted rights to it")

// ErrLeased refuses a put with a lease that would delete the key without the approval that the policy requires.
var ErrLeased = errors.New("scope: the policy asks for approval of the deletion of this key, and a lease would delete it without; put it without a lease")

// approval is the one that a planned transaction needs, nil if it needs none: that
// of the longest prefix of each key that it puts or deletes. verb is that of an action.
func (p *Policy) approval(pl *plan, verb string) (needed *Approval, failure error) {
	if len(p.Approvals) == 0 {
		return nil, nil
	}
	rest := pl.inner
	for i := range pl.ops {
		op := &pl.ops[i]
		var a *Approval
		switch op.Kind {
		case OpPut, OpDelete:
			a, failure = p.covering(op, verb)
		case OpTxn:
			a, failure = p.approval(&rest[0], verb)
			rest = rest[1:]
		}
		if failure == nil && a != nil && needed != nil && a != needed {
			failure = ErrManyApprovals
		}
		if failure != nil {
			return nil, failure
		}
		if a != nil {
			needed = a
		}
	}
	return needed, nil
}

// covering is the approval that one put or deletion needs. A put that names a lease is
// refused where the deletion of its key takes approval.
func (p *Policy) covering(op *Op, verb string) (needed *Approval, failure error) {
	if op.Kind == OpPut && op.Lease != 0 && p.guards(op.Key) {
		return nil, ErrLeased
	}
	return p.longest(op, op.Kind == OpDelete, verb)
}

// AsksOfKeys reports whether some change of a key needs approval, or may ask for it where islands decide.
func (p *Policy) AsksOfKeys() bool {
	return len(p.Partitions) > 0 || slices.ContainsFunc(p.Approvals, func(a Approval) bool { return a.ofKeys() })
}

// Covers is the approval that a put of a key by no action needs, or its deletion; nil if it needs none.
func (p *Policy) Covers(key []byte, deletion bool) *Approval {
	a, _ := p.longest(&Op{Key: key}, deletion, "") // of one key, no two that contradict each other
	return a
}

// longest is the approval with the longest prefix of those that cover an operation,
// of deletions too if it deletes, and of an action's verb.
func (p *Policy) longest(op *Op, deletes bool, verb string) (needed *Approval, failure error) {
	touched := 0
	for i := range p.Approvals {
		a := &p.Approvals[i]
		if !a.ofKeys() || a.Matter == Deletions && !deletes || !a.binds(verb) || !meets(op, a.Prefix) {
			continue
		}
		touched++
		if needed == nil || len(a.Prefix) > len(needed.Prefix) || len(a.Prefix) == len(needed.Prefix) && (a.Matter == Deletions || len(a.Verbs) > 0) {
			needed = a
		}
	}
	if touched > 1 && !inside(op, needed.Prefix) {
		return nil, ErrManyApprovals
	}
	return needed, nil
}

// meets reports whether an operation may touch a key with a prefix.
func meets(op *Op, prefix []byte) bool {
	switch {
	case len(op.End) == 0:
		return bytes.HasPrefix(op.Key, prefix)
	case bytes.HasPrefix(op.Key, prefix):
		return true
	case bytes.Compare(op.Key, prefix) > 0:
		return false
	}
	return ToEnd(op.End) || bytes.Compare(op.End, prefix) > 0
}

// inside reports whether an operation touches no key without a prefix.
func inside(op *Op, prefix []byte) bool {
	if len(op.End) == 0 || len(prefix) == 0 {
		return true
	}
	end := kv.PrefixEnd(prefix)
	return bytes.HasPrefix(op.Key, prefix) && (end == nil || !ToEnd(op.End) && bytes.Compare(op.End, end) <= 0)
}
