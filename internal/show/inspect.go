package show

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/plain"
	"github.com/aweigh/aweigh/internal/policytext"
	"github.com/aweigh/aweigh/internal/wysiwys"
	"github.com/aweigh/aweigh/lineage"
	"github.com/aweigh/aweigh/scope"
)

// Inspection writes a motion's request, as proven; pinned reports whether its
// network was compared with one known from elsewhere, and now is the time by the
// clock of this machine.
func (p Printer) Inspection(r *scope.MotionReport, pinned bool, now aweigh.Instant) error {
	if p.Format == JSON {
		out, err := inspectionOf(r, pinned, now)
		if err != nil {
			return err
		}
		return p.JSON(out)
	}
	mo := &r.Motion
	shown, err := wysiwys.Motion(mo, &r.Under.Policy)
	if err != nil {
		return err
	}
	id := r.Author.ID()
	author := called(namedIn(r, id), id[:])
	if acts := r.Mutation.Granted(); acts != nil {
		author = called(namedIn(r, aweigh.Hash(acts)), acts) + " by " + author
	}
	because := r.Mutation.Justification
	if because == "" {
		because = "(no reason given)"
	}
	caller := "(the author names none)"
	if r.Mutation.Caller != "" {
		caller = r.Mutation.Caller + ", as the author states; nothing proves it"
	}
	fmt.Fprintf(p.Out, "motion %s\n", mo.ID())
	err = p.table(
		[]string{"  network", r.Name + "  " + r.Network.String()},
		[]string{"  proposed by", author + "  " + r.Author.String()},
		[]string{"  caller", caller},
		[]string{"  because", because},
		[]string{"  opened", openedBy(r)},
		[]string{"  proven", ProvenBy(r)},
		[]string{"  deadline", deadline(r, now)},
		[]string{"  asked for", mo.Approval.String()},
		[]string{"  takes", takes(r)},
	)
	if err != nil {
		return err
	}
	if d := r.Decision; d != nil {
		fmt.Fprintf(p.Out, "\nit would %s\n", Line(mo.Subject()))
		p.decision(r)
	} else {
		p.conditions(r)
		p.intended(r)
	}
	if err := p.motionImpact(mo, foundBy(r)); err != nil {
		return err
	}
	fmt.Fprintln(p.Out, "\nwho may vote:")
	if err := p.voters(r); err != nil {
		return err
	}
	fmt.Fprintln(p.Out)
	if r.Draft {
		return p.ToSign("the motion as it would open, whose mutation a ballot names", shown)
	}
	return p.ToSign("the motion as it opened, whose mutation a ballot names", shown)
}

// openedBy is the block that opened a motion.
func openedBy(r *scope.MotionReport) string {
	mo := &r.Motion
	if r.Draft {
		return fmt.Sprintf("not yet, states the node that wrote this file; its newest block was block %d of epoch %d, of %s",
			r.Head.Height, r.Head.Epoch, instant(int64(r.Head.Time)))
	}
	return fmt.Sprintf("%s, block %d of epoch %d, which anchors of weight %d of %d made final",
		instant(int64(mo.Opened)), mo.Height, mo.Epoch, r.Origin.Weight, r.Origin.Total)
}

// deadline is until when a motion can be voted on.
func deadline(r *scope.MotionReport, now aweigh.Instant) string {
	if r.Draft {
		return fmt.Sprintf("%v after a block opens it; a block can do so until %s, %s", r.Motion.Approval.Window,
			instant(int64(r.Mutation.ValidUntil)), remaining(r.Mutation.ValidUntil, now))
	}
	return instant(int64(r.Motion.Deadline)) + ", " + remaining(r.Motion.Deadline, now)
}

// ProvenBy reports how much of an opening is proven.
func ProvenBy(r *scope.MotionReport) string {
	switch {
	case r.Draft:
		return fmt.Sprintf("that its author signed it, and who may vote by each approval of the policy of epoch %d; which approval "+
			"it takes, and that it is not open or closed by now, is only stated by the node that wrote this file", r.Under.Number)
	case !r.Bare:
		return fmt.Sprintf("by block %d, which names what opened", r.Head.Height)
	case r.Decision != nil:
		return "as ordered; that it opened is the word of the node that wrote this file, as no later block was final"
	}
	return "as ordered; that it opened, under which approval, and what it found are only stated by the node that wrote this file, as no later block was final"
}

// decision writes a decision in full.
func (p Printer) decision(r *scope.MotionReport) {
	switch d := r.Decision; d.Kind {
	case scope.SetPolicy:
		for _, c := range policytext.Diff(r.Under.Policy, *d.Policy) {
			fmt.Fprintf(p.Out, "  %s\n    - %s\n    + %s\n", Line(c.Field), Line(c.From), Line(c.To))
		}
	case scope.Admit:
		fmt.Fprintf(p.Out, "  key %s, node %s, sponsor %s\n", d.Anchor.Key, Line(d.Anchor.Peer), r.Motion.NameOf(d.Sponsor))
	case scope.Readmit:
		if d.Anchor == nil {
			fmt.Fprintf(p.Out, "  approver %s\n", d.Subject)
			break
		}
		fmt.Fprintf(p.Out, "  key %s, node %s\n", d.Anchor.Key, Line(d.Anchor.Peer))
	case scope.Attest:
		fmt.Fprintf(p.Out, "  anchor %s %s\n  score %d, because %s\n", r.Motion.NameOf(d.Subject), d.Subject, d.Score, Line(d.Reason))
	case scope.Fold:
		fmt.Fprintf(p.Out, "  the keys of %s, and what their scope decided, come back to the scope above\n", Key(d.Child.Prefix))
	case scope.Delegate, scope.Revoke:
		for i := range d.Child.Anchors {
			a := &d.Child.Anchors[i]
			fmt.Fprintf(p.Out, "  anchor %s %s, trust %d\n", Line(a.Name), a.Key.ID(), a.Score)
		}
		mode := d.Child.Policy.Rules.Mode
		fmt.Fprintf(p.Out, "  policy that of mode %s, except for\n", mode)
		for _, c := range policytext.Diff(scope.DefaultPolicy(mode), d.Child.Policy) {
			fmt.Fprintf(p.Out, "  %s\n    - %s\n    + %s\n", Line(c.Field), Line(c.From), Line(c.To))
		}
		for _, w := range policytext.Lost(&r.Under.Policy, nil, d) {
			fmt.Fprintf(p.Out, "  warning: %s\n", Line(w))
		}
	default:
		fmt.Fprintf(p.Out, "  anchor %s %s\n", r.Motion.NameOf(d.Subject), d.Subject)
	}
}

// namedIn is the name of an author, if the roster or the policy with which a motion opened, or the motion, gives one.
func namedIn(r *scope.MotionReport, id aweigh.Hash) string {
	under := r.Under.Terms()
	return cmp.Or(under.AuthorNames()[id], r.Motion.NameOf(id))
}

// remaining is how far a deadline is by this machine's clock.
func remaining(deadline, now aweigh.Instant) string {
	d := deadline.Sub(now)
	if d < 0 {
		return fmt.Sprintf("which passed %v ago by the clock of this machine", (-d).Round(time.Second))
	}
	return fmt.Sprintf("in %v by the clock of this machine", d.Round(time.Second))
}

// takes is what carries the motion, in weights.
func takes(r *scope.MotionReport) string {
	total := uint64(0)
	var must []string
	for i := range r.Motion.Voters {
		v := &r.Motion.Voters[i]
		total += v.Weight
		if v.Required {
			must = append(must, v.Name)
		}
	}
	s := fmt.Sprintf("approvals of weight %d of %d", r.Motion.Rule.Threshold(total), total)
	if n := r.Motion.Rule.MinAnchors; n > 0 {
		s += ", by " + Count(n, "anchor") + " or more"
	}
	if len(must) > 0 {
		s += ", and of " + strings.Join(must, " and ")
	}
	return s
}

func (p Printer) voters(r *scope.MotionReport) error {
	rows := [][]string{{"NAME", "ID", "WEIGHT", "AS", "KEY"}}
	for _, v := range r.Motion.Voters {
		as := "anchor"
		if !v.Anchor {
			as = "approver"
		}
		if v.Required {
			as += ", must approve"
		}
		rows = append(rows, []string{brief(v.Name), v.Key.ID().Short(), fmt.Sprint(v.Weight), as, shortKey(v.Key.String())})
	}
	return p.table(rows...)
}

// shortKey is a key for a table; those of ML-DSA are long.
func shortKey(key string) string {
	if len(key) > 60 {
		return key[:57] + "…"
	}
	return key
}

// conditions writes the compares of the transaction.
func (p Printer) conditions(r *scope.MotionReport) {
	if len(r.Txn.Reach) > 0 {
		fmt.Fprintln(p.Out, "\nthe author may change these keys alone; if an object has an alias elsewhere by then, the motion is void:")
		for i := range r.Txn.Reach {
			fmt.Fprintf(p.Out, "  %s\n", keyRange(r.Txn.Reach[i].Key, r.Txn.Reach[i].End))
		}
	}
	if len(r.Txn.Compare) == 0 || r.Draft {
		return
	}
	held := "held"
	if !r.Motion.Success {
		held = "did not all hold"
	}
	fmt.Fprintf(p.Out, "\nconditions, which %s when it opened; should that change, the motion is void:\n", held)
	for i := range r.Txn.Compare {
		fmt.Fprintf(p.Out, "  %s\n", condition(&r.Txn.Compare[i]))
	}
}

var (
	targets   = map[scope.Target]string{scope.OnVersion: "version", scope.OnCreate: "create revision", scope.OnMod: "mod revision", scope.OnValue: "value", scope.OnLease: "lease"}
	relations = map[scope.Relation]string{scope.Equal: "=", scope.Greater: ">", scope.Less: "<", scope.NotEqual: "!="}
)

func condition(c *scope.Compare) string {
	s := fmt.Sprintf("%s of %s %s ", targets[c.Target], keyRange(c.Key, c.End), relations[c.Relation])
	if c.Target == scope.OnValue {
		return s + plain.Quote(string(c.Value))
	}
	return s + fmt.Sprint(c.Number)
}

// keyRange is a key, or a range of keys.
func keyRange(key, end []byte) string {
	switch {
	case len(end) == 0:
		return Key(key)
	case len(end) == 1 && end[0] == 0:
		return "all keys from " + plain.Quote(string(key)) + " on"
	}
	return "all keys from " + plain.Quote(string(key)) + " up to " + plain.Quote(string(end))
}

// intended writes the effects of the motion.
func (p Printer) intended(r *scope.MotionReport) {
	switch {
	case r.Draft && r.Mutation.Class == scope.Name:
		fmt.Fprintf(p.Out, "\nif it is carried:\n  %s\n", Line(r.Motion.Subject()))
		return
	case r.Draft:
		p.branches(&r.Txn)
		return
	}
	fmt.Fprintln(p.Out, "\nif it is carried:")
	ops := r.Txn.Success
	if !r.Motion.Success {
		ops = r.Txn.Failure
	}
	if len(r.Effects) == 0 {
		p.operations(ops, "  ")
		fmt.Fprintln(p.Out, "  (the present content of these keys is not shown: there are transactions within the transaction)")
		return
	}
	for i := range r.Effects {
		p.effect(&r.Effects[i])
	}
}

// branches writes what a transaction does that no block has ordered.
func (p Printer) branches(t *scope.Txn) {
	if len(t.Compare) == 0 {
		fmt.Fprintln(p.Out, "\nif it is carried:")
		p.operations(t.Success, "  ")
		return
	}
	fmt.Fprintln(p.Out, "\nif it is carried, and when it opens all of these hold:")
	for i := range t.Compare {
		fmt.Fprintf(p.Out, "  %s\n", Line(condition(&t.Compare[i])))
	}
	fmt.Fprintln(p.Out, "then:")
	p.operations(t.Success, "  ")
	fmt.Fprintln(p.Out, "otherwise:")
	if len(t.Failure) == 0 {
		fmt.Fprintln(p.Out, "  nothing")
	}
	p.operations(t.Failure, "  ")
}

func (p Printer) effect(e *scope.Effect) {
	name := Line(keyRange(e.Op.Key, e.Op.End))
	switch {
	case len(e.Op.End) > 0:
		fmt.Fprintf(p.Out, "  delete %s: %d when it opened\n", name, e.Keys)
	case e.Class() == lineage.Delete && e.Keys == 0:
		fmt.Fprintf(p.Out, "  delete %s, which was not there when it opened\n", name)
	default:
		fmt.Fprintf(p.Out, "  %s %s\n", e.Class(), name)
	}
	if len(e.Op.End) > 0 {
		if len(e.Held) > 0 {
			fmt.Fprintln(p.Out, "    as the node that wrote this file states; each of these was written so:")
		}
		for i := range e.Held {
			fmt.Fprintf(p.Out, "    - %s = %s\n", Line(Key(e.Held[i].Key)), text(e.Held[i].Value))
		}
	} else {
		p.content(e)
	}
	if e.Op.Lease != 0 {
		fmt.Fprintf(p.Out, "    %s\n", leaseText(e.Op.Lease, e.Found.TTL, e.Found.Keeper[:], ""))
	}
	if e.Op.IgnoreLease {
		fmt.Fprintln(p.Out, "    keeps its lease, if it has one")
	}
	if int64(len(e.Held)) < e.Keys {
		fmt.Fprintln(p.Out, "    (what it held is not in the file)")
	}
}

// content writes how the content of one key changes.
func (p Printer) content(e *scope.Effect) {
	var before, after []byte
	if len(e.Held) > 0 {
		before = append([]byte{}, e.Held[0].Value...)
	}
	if e.Op.Kind == scope.OpPut {
		after = append([]byte{}, e.Op.Value...)
	}
	switch {
	case e.Op.IgnoreValue:
		fmt.Fprintln(p.Out, "    keeps its value")
		return
	case e.Copies != nil:
		fmt.Fprintf(p.Out, "    + (%s)\n", copied(e.Copies.Key, e.Copies.Revision))
		return
	}
	if before != nil && after != nil && string(before) == string(after) {
		fmt.Fprintln(p.Out, "    with the value that it has")
	}
	for _, l := range difference(before, after) {
		fmt.Fprintf(p.Out, "    %s\n", l)
	}
}

// copied is the value that a change of names puts.
func copied(key []byte, revision int64) string {
	s := "the value of " + Line(Key(key))
	if revision > 0 {
		s += fmt.Sprintf(" in revision %d", revision)
	}
	return s
}

// operations writes a branch of a transaction with transactions within.
func (p Printer) operations(ops []scope.Op, indent string) {
	for i := range ops {
		switch op := &ops[i]; op.Kind {
		case scope.OpRange:
			fmt.Fprintf(p.Out, "%sread %s\n", indent, Line(keyRange(op.Key, op.End)))
		case scope.OpDelete:
			fmt.Fprintf(p.Out, "%sdelete %s\n", indent, Line(keyRange(op.Key, op.End)))
		case scope.OpMerge:
			fmt.Fprintf(p.Out, "%smerge %s into what follows\n", indent, Line(Key(op.Key)))
		case scope.OpPut:
			fmt.Fprintf(p.Out, "%sput %s\n", indent, Line(Key(op.Key)))
			if op.Lease != 0 {
				fmt.Fprintf(p.Out, "%s  with lease %x\n", indent, uint64(op.Lease))
			}
			for _, l := range difference(nil, append([]byte{}, op.Value...)) {
				fmt.Fprintf(p.Out, "%s  %s\n", indent, l)
			}
		case scope.OpTxn:
			fmt.Fprintf(p.Out, "%sif all of these hold:\n", indent)
			for j := range op.Txn.Compare {
				fmt.Fprintf(p.Out, "%s  %s\n", indent, Line(condition(&op.Txn.Compare[j])))
			}
			fmt.Fprintf(p.Out, "%sthen:\n", indent)
			p.operations(op.Txn.Success, indent+"  ")
			fmt.Fprintf(p.Out, "%selse:\n", indent)
			p.operations(op.Txn.Failure, indent+"  ")
		}
	}
}
