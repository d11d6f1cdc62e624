package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/client"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/internal/policytext"
	"github.com/aweigh/aweigh/internal/show"
	"github.com/aweigh/aweigh/internal/wysiwys"
	"github.com/aweigh/aweigh/scope"
)

// Every command that makes a signature goes through here first: it shows all of the signed
// content, and refuses content that it cannot show, or for which a signature comes too
// late.

// errPointless is wrapped where a signature would change nothing.
var errPointless = errors.New("nothing was signed, as it would change nothing")

// decisionOf is the decision of a node's answer.
func decisionOf(x *aweighv1.Proposal) (d scope.Decision, err error) {
	read, _, err := wysiwys.Decision(x.Decision, nil)
	if err != nil {
		return d, err
	}
	if id := read.ID(); !bytes.Equal(id[:], x.Id) {
		return d, fmt.Errorf("%w: the node calls decision %s %s", wysiwys.ErrHidden, id.Short(), hex.EncodeToString(x.Id[:min(4, len(x.Id))]))
	}
	return *read, nil
}

// inForce is the policy of a node's answer.
func inForce(r *aweighv1.TrustResponse) (p scope.Policy, err error) {
	if err = canon.Decode(r.Policy, &p); err != nil {
		err = fmt.Errorf("%w: the policy in force: %w", wysiwys.ErrHidden, err)
	}
	return p, err
}

// signs shows a decision that is to be signed, in full, on standard error, whatever the format of the answer. It
// refuses one of which this program does not know all, and one that is carried already or would be void. Where several
// anchors are to sign, here is true.
func (s *session) signs(ctx context.Context, r *aweighv1.TrustResponse, d scope.Decision, here bool) (*wysiwys.Shown, error) {
	p, err := inForce(r)
	if err != nil {
		return nil, err
	}
	_, shown, err := wysiwys.Decision(canon.Encode(d), &p)
	if err != nil {
		return nil, err
	}
	if err := s.stillOpen(ctx, r, d); err != nil {
		return nil, err
	}
	s.warnLost(ctx, &p, &d)
	signer := nodeOf(r.Header)
	if here {
		signer = "each anchor on this machine"
	}
	return shown, show.Printer{Out: s.told, Format: show.Table}.ToSign(fmt.Sprintf("decision %s, which %s signs", d.ID().Short(), signer), shown)
}

// warnLost reports which rules would not hold any more below a prefix that is to be delegated, or given to others,
// and whether the anchors that get it have it already.
func (s *session) warnLost(ctx context.Context, above *scope.Policy, d *scope.Decision) {
	own := s.ownPolicy(ctx, d)
	for _, w := range policytext.Lost(above, own, d) {
		fmt.Fprintf(s.told, "aweigh: warning: %s\n", show.Line(w))
	}
	if d.Kind == scope.Revoke && own != nil && own.Hash() == d.Child.Policy.Hash() && s.governs(ctx, d.Child) {
		fmt.Fprintf(s.told, "aweigh: warning: this changes neither anchors nor policy of %s, which has them already; "+
			"it begins their trust anew, and what is open there becomes void\n", show.Key(d.Child.Prefix))
	}
}

// governs reports whether the anchors that a scope is to get are those that it has, with no order that others follow.
func (s *session) governs(ctx context.Context, to *scope.Child) bool {
	all, err := s.Client.Scopes(ctx)
	for _, x := range all {
		if bytes.Equal(x.Prefix, to.Prefix) && x.YieldsNs > 0 {
			return false
		}
	}
	if err != nil {
		return false
	}
	now, err := rosterOf(ctx, s.Client.In(inScope(&aweighv1.Scope{Prefix: to.Prefix})))
	if err != nil || len(now.Anchors) != len(to.Anchors) {
		return false
	}
	for _, a := range to.Anchors {
		if !slices.ContainsFunc(now.Anchors, func(b scope.Anchor) bool {
			return a.Key.ID() == b.Key.ID() && a.Peer == b.Peer && a.Name == b.Name
		}) {
			return false
		}
	}
	return true
}

// ownPolicy is the policy in force in the scope that a decision revokes or folds; nil if there is none, or no node
// answers for it.
func (s *session) ownPolicy(ctx context.Context, d *scope.Decision) *scope.Policy {
	if d.Kind != scope.Revoke && d.Kind != scope.Fold || d.Child == nil {
		return nil
	}
	name := inScope(&aweighv1.Scope{Prefix: d.Child.Prefix})
	if name == "" { // no header holds it
		return nil
	}
	in := *s
	in.Client = s.Client.In(name)
	if _, p, err := in.policy(ctx); err == nil {
		return &p
	}
	return nil
}

// policyOver is the policy in force in the scope of a motion, which its mutation names.
func (s *session) policyOver(ctx context.Context, m *aweighv1.Motion) (*scope.Policy, error) {
	of, err := scope.OpenMutation(m.Mutation)
	if err != nil {
		return nil, fmt.Errorf("%w: a mutation: %w", wysiwys.ErrHidden, err)
	}
	in := *s
	in.Client = s.Client.In(of.Mutation.Scope.String())
	r, p, err := in.policy(ctx)
	if err == nil && !bytes.Equal(r.Header.GetScope(), of.Mutation.Scope[:]) {
		err = fmt.Errorf("the node sent the policy of another scope")
	}
	return &p, err
}

func nodeOf(h *aweighv1.Header) string {
	if h.GetNode() == "" {
		return "the anchor that answers"
	}
	return show.Line(h.Node)
}

// stillOpen reports why it is pointless to approve a decision. One that is not proposed yet
// passes.
func (s *session) stillOpen(ctx context.Context, r *aweighv1.TrustResponse, d scope.Decision) error {
	id := d.ID()
	for _, x := range r.Proposals {
		switch {
		case !bytes.Equal(x.Id, id[:]):
			continue
		case x.Carried > 0:
			return fmt.Errorf("%w: decision %s is %s", errPointless, id.Short(), show.Missing(x, nil))
		case len(x.Motion) == 0:
			return nil
		}
		m, err := s.Client.Motion(ctx, x.Motion)
		if err != nil {
			return err
		}
		return votable(m.Motion)
	}
	return nil
}

// errElsewhere is wrapped where a motion or a decision is of another scope than the one that a command is about.
var errElsewhere = fmt.Errorf("%w", errUsage)

// errContrary is wrapped where an anchor would contradict what it signed.
var errContrary = errors.New("nothing was signed")

// uncontradicted reports whether the anchor that answers has said the opposite on a motion. The anchor looks at its own
// record again before it signs.
func uncontradicted(r *aweighv1.MotionResponse, choice string) error {
	for _, v := range r.Motion.Voters {
		if !v.Anchor || v.Name == "" || v.Name != r.Header.GetNode() {
			continue
		}
		for _, b := range v.Ballots {
			if b.Choice != choice {
				return fmt.Errorf("%w: %s has said %s on motion %x, and cannot take it back: two ballots that contradict each other prove a lie, and cost all trust",
					errContrary, show.Line(v.Name), show.Line(b.Choice), r.Motion.Id[:4])
			}
		}
	}
	return nil
}

// votable reports why it is pointless to vote on a motion.
func votable(m *aweighv1.Motion) error {
	switch {
	case m.ApprovedHeight > 0:
		return fmt.Errorf("%w: motion %x is approved, and waits for its turn", errPointless, m.Id[:4])
	case m.ClosedHeight > 0:
		s := m.Fate
		if m.Reason != "" {
			s += ": " + m.Reason
		}
		return fmt.Errorf("%w: motion %x is closed: %s", errPointless, m.Id[:4], show.Line(s))
	case m.Doomed != "":
		return fmt.Errorf("%w: as things stand, motion %x would be void: %s", errPointless, m.Id[:4], show.Line(m.Doomed))
	}
	return nil
}

// closed reports what became of a decision that is not open any more, if people named one;
// else it is the error given.
func (s *session) closed(ctx context.Context, text string, absent error) error {
	if !errors.Is(absent, errAbsent) {
		return absent
	}
	r, err := s.motionOnRecord(ctx, text)
	switch {
	case errors.Is(err, errElsewhere):
		return err
	case err == nil && s.in == "" && len(r.Motion.ScopePrefix) > 0 && r.Motion.ClosedHeight == 0:
		return fmt.Errorf("%w: decision %s is one of %s; add --scope %s", errElsewhere, text, scopeCalled(r.Motion.ScopePrefix),
			show.Word(inScope(&aweighv1.Scope{Id: r.Motion.Scope, Prefix: r.Motion.ScopePrefix})))
	}
	if errors.Is(err, errUsage) || errors.Is(err, client.ErrNotFound) || err == nil && r.Motion.ClosedHeight == 0 {
		return absent
	}
	if err != nil {
		return err
	}
	return votable(r.Motion)
}

// mayVote shows a motion that is to be voted on, in full, on standard error, whatever the format of the answer, and
// what of it is proven.
func (s *session) mayVote(ctx context.Context, m *aweighv1.Motion, choice string, v *vouched) error {
	mo, err := show.Opening(m)
	if err != nil {
		return err
	}
	d := show.DecisionOf(m)
	var stated *scope.Policy
	if d != nil { // its policy is shown as a difference
		if stated, err = s.policyOver(ctx, m); err != nil {
			return fmt.Errorf("%w: the policy in force in %s is not known: %w", errContrary, scopeCalled(m.ScopePrefix), err)
		}
	}
	base := v.base(mo, stated)
	shown, err := wysiwys.Motion(mo, base)
	if err != nil {
		return err
	}
	if d != nil {
		s.warnLost(ctx, cmp.Or(base, stated), d)
	}
	of, err := scope.OpenMutation(mo.Mutation)
	if err != nil {
		return fmt.Errorf("%w: a mutation: %w", wysiwys.ErrHidden, err)
	}
	if !bytes.Equal(of.Mutation.Granted(), m.Principal) {
		return fmt.Errorf("%w: the node states that motion %x uses the rights of another author than its mutation names", wysiwys.ErrHidden, m.Id[:4])
	}
	what := fmt.Sprintf("motion %x of %s, proposed by %s, on which is signed: %s", m.Id[:4], scopeCalled(m.ScopePrefix),
		show.Line(show.Proposer(m)), strings.ToLower(choice))
	if err := (show.Printer{Out: s.told, Format: show.Table}).ToVote(what, mo, shown); err != nil {
		return err
	}
	_, err = fmt.Fprintf(s.told, "\n%s\n\n", v.worth())
	return err
}

// fate is the error that a decision ended with, nil if it is open, carried or in effect.
func fate(g *aweighv1.GovernResponse) error {
	if x := g.GetProposal(); show.Failed(x) {
		return errQuiet{fmt.Errorf("%w: %s", errNotCarried, x.Fate)}
	}
	return nil
}
