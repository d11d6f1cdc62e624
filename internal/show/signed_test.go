package show

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/aweigh/aweigh"
	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/internal/vary"
	"github.com/aweigh/aweigh/internal/wysiwys"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/trust"
)

// TestToolsShowEveryField: what motion show, ballot inspect and sign, and those that have a
// decision signed write changes with every field of it, in text and in JSON; or they refuse.
func TestToolsShowEveryField(t *testing.T) {
	testshort.Skip(t)
	base := scope.OpenPolicy(quorum.BFT)
	txn := scope.Txn{
		Compare: []scope.Compare{{Target: scope.OnMod, Relation: scope.Greater, Key: []byte("/k"), Number: 7}},
		Success: []scope.Op{{Kind: scope.OpPut, Key: []byte("/k"), Value: []byte("two\nlines"), Lease: 8, Prev: true}},
		Failure: []scope.Op{{Kind: scope.OpDelete, Key: []byte("/k"), End: []byte("/l")}},
	}
	txn.Reach = []scope.Reach{{Key: []byte("/k"), End: []byte("/l")}}
	opened := vary.Motion()
	opened.Mutation = mutationOf(scope.Write, txn)
	opened.Basis = []scope.Found{{Keys: 1, Newest: 2, TTL: 3, Keeper: aweigh.Sum([]byte("keeper"))}}

	ofMotion := func(mo scope.Motion) (*aweighv1.MotionResponse, *scope.MotionReport) {
		id := mo.ID()
		m := &aweighv1.Motion{Id: id[:], Fate: "open", Opening: canon.Encode(mo), Mutation: mo.Mutation}
		report := &scope.MotionReport{Motion: mo, Txn: txn, Under: &scope.Epoch{Policy: base}}
		must(t, canon.Decode(mo.Mutation, &report.Mutation))
		return &aweighv1.MotionResponse{Motion: m}, report
	}
	tools := map[string]func(p Printer, mo scope.Motion) error{
		"motion show": func(p Printer, mo scope.Motion) error { r, _ := ofMotion(mo); return p.Motion(r) },
		"ballot approve": func(p Printer, mo scope.Motion) error {
			r, _ := ofMotion(mo)
			if p.Format == JSON {
				return p.Motion(r)
			}
			read, err := Opening(r.Motion)
			if err != nil {
				return err
			}
			shown, err := wysiwys.Motion(read, nil)
			if err != nil {
				return err
			}
			return p.ToVote("motion", read, shown)
		},
		"ballot inspect": func(p Printer, mo scope.Motion) error { _, r := ofMotion(mo); return p.Inspection(r, true, 0) },
	}
	for name, tool := range tools {
		t.Run(name, func(t *testing.T) {
			shows(t, opened, 20, []string{".Mutation", ".Key.Scheme", ".Key.Bytes", ".Who"}, tool)
			shows(t, txn, 8, []string{".Range", ".Txn"}, func(p Printer, x scope.Txn) error {
				mo := opened
				mo.Mutation = mutationOf(scope.Write, x)
				return tool(p, mo)
			})
			shows(t, vary.Mutation(scope.Write, txn), 4, []string{".Content", ".Class"}, func(p Printer, m scope.Mutation) error {
				mo := opened
				mo.Mutation = m.Encode()
				return tool(p, mo)
			})
		})
	}
	policy := vary.Policy()
	admit := scope.Admission(aweigh.Sum([]byte("scope")), vary.Key(5), "vaasa", "peer", aweigh.Sum([]byte("sponsor")))
	child := vary.Child()
	for name, x := range map[string]struct {
		d     scope.Decision
		least int
	}{
		"policy":   {scope.Decision{Kind: scope.SetPolicy, Policy: &policy}, 40},
		"admit":    {admit, 4},
		"delegate": {scope.Decision{Kind: scope.Delegate, Child: &child}, 40},
		"revoke":   {scope.Decision{Kind: scope.Revoke, Child: &child}, 40},
		"readmit":  {scope.Decision{Kind: scope.Readmit, Subject: admit.Subject, Anchor: admit.Anchor}, 2},
		"attest":   {scope.Decision{Kind: scope.Attest, Subject: aweigh.Sum([]byte("a")), Score: 700_000, Reason: "audited"}, 1},
		"evict":    {scope.Decision{Kind: scope.Evict, Subject: aweigh.Sum([]byte("a"))}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			// Absent pointers are of other kinds of decisions.
			visit := func(d scope.Decision, tool func(Printer, scope.Decision) error) {
				switch {
				case d.Policy != nil:
					shows(t, *d.Policy, x.least, keys, func(p Printer, v scope.Policy) error { d := d; d.Policy = &v; return tool(p, d) })
				case d.Child != nil:
					shows(t, *d.Child, x.least, keys, func(p Printer, v scope.Child) error { d := d; d.Child = &v; return tool(p, d) })
				case d.Kind == scope.Readmit:
					shows(t, *d.Anchor, x.least, keys, func(p Printer, v scope.Anchor) error { d := d; d.Anchor = &v; return tool(p, d) })
				case d.Kind == scope.Attest:
					shows(t, d.Score, 1, nil, func(p Printer, v trust.Score) error { d := d; d.Score = v; return tool(p, d) })
					shows(t, d.Reason, 1, nil, func(p Printer, v string) error { d := d; d.Reason = v; return tool(p, d) })
					shows(t, d.Subject, 1, nil, func(p Printer, v aweigh.AnchorID) error { d := d; d.Subject = v; return tool(p, d) })
				case d.Anchor != nil:
					shows(t, *d.Anchor, 2, keys, func(p Printer, v scope.Anchor) error { d := d; d.Anchor = &v; return tool(p, d) })
					shows(t, d.Sponsor, 1, nil, func(p Printer, v aweigh.AnchorID) error { d := d; d.Sponsor = v; return tool(p, d) })
					shows(t, d.Consent, 1, nil, func(p Printer, v []byte) error { d := d; d.Consent = v; return tool(p, d) })
				default:
					shows(t, d.Subject, 1, nil, func(p Printer, v aweigh.AnchorID) error { d := d; d.Subject = v; return tool(p, d) })
				}
			}
			visit(x.d, func(p Printer, d scope.Decision) error {
				_, shown, err := wysiwys.Decision(canon.Encode(d), &base)
				if err != nil {
					return err
				}
				if p.Format == Table {
					return p.ToSign("decision", shown)
				}
				return p.Anchors(&aweighv1.TrustResponse{Proposals: []*aweighv1.Proposal{{Decision: canon.Encode(d)}}})
			})
			visit(x.d, func(p Printer, d scope.Decision) error { // proposed and approved as a motion
				mo := opened
				mo.Mutation = mutationOf(scope.Govern, d)
				r, report := ofMotion(mo)
				if p.Format == JSON {
					return p.Motion(r)
				}
				report.Decision = &d
				return p.Inspection(report, true, 0)
			})
		})
	}
}

// TestNoToolCutsADecision: each prefix of a long entry of a policy is in what the tools print of a decision, alone and
// as a motion.
func TestNoToolCutsADecision(t *testing.T) {
	base := scope.OpenPolicy(quorum.BFT)
	p := vary.Clone(base)
	author := vary.LongAuthor()
	p.Authors = append(p.Authors, author)
	d := scope.Decision{Kind: scope.SetPolicy, Policy: &p}
	mo := vary.Motion()
	mo.Mutation = mutationOf(scope.Govern, d)
	id := mo.ID()
	report := &scope.MotionReport{Motion: mo, Decision: &d, Under: &scope.Epoch{Policy: base}}
	must(t, canon.Decode(mo.Mutation, &report.Mutation))
	_, alone, err := wysiwys.Decision(canon.Encode(d), &base)
	must(t, err)
	opened, err := wysiwys.Motion(&mo, &base)
	must(t, err)
	for name, tool := range map[string]func(p Printer) error{
		"decision": func(p Printer) error { return p.ToSign("decision", alone) },
		"vote":     func(p Printer) error { return p.ToVote("motion", &mo, opened) },
		"inspect":  func(p Printer) error { return p.Inspection(report, true, 0) },
		"show": func(p Printer) error {
			return p.Motion(&aweighv1.MotionResponse{Motion: &aweighv1.Motion{Id: id[:], Fate: "open", Opening: canon.Encode(mo), Mutation: mo.Mutation}})
		},
	} {
		var out bytes.Buffer
		must(t, tool(Printer{Out: &out, Format: Table}))
		_, full, _ := strings.Cut(out.String(), ", in full:\n")
		for _, prefix := range author.Prefixes {
			if !strings.Contains(full, string(prefix)) {
				t.Errorf("%s does not show %.5s…:\n%s", name, prefix, full)
				break
			}
		}
	}
}

var keys = []string{".Key.Scheme", ".Key.Bytes", ".Who"}

func mutationOf(c scope.Class, content any) []byte {
	m := vary.Mutation(c, content)
	return m.Encode()
}

// shows holds that a tool's output changes with every field of a value, and that it shows at
// least so many.
func shows[T any](t *testing.T, value T, least int, skip []string, tool func(Printer, T) error) {
	t.Helper()
	write := func(f Format, v T) (string, error) {
		var out bytes.Buffer
		err := tool(Printer{Out: &out, Format: f}, v)
		return out.String(), err
	}
	text, err := write(Table, vary.Clone(value))
	must(t, err)
	data, err := write(JSON, vary.Clone(value))
	must(t, err)
	shown := 0
	vary.Each(value, skip, func(path string, changed T) {
		x, err := write(Table, changed)
		y, jsonErr := write(JSON, changed)
		hidden := strings.Contains(y, `"hidden": "`)
		switch {
		case errors.Is(err, wysiwys.ErrHidden) && (jsonErr != nil || hidden || !strings.Contains(y, `"decision": {`)):
		case err != nil || jsonErr != nil:
			t.Errorf("%T%s: %v, %v", value, path, err, jsonErr)
		case x == text || y == data:
			t.Errorf("%T%s is not shown in text (%v), in JSON (%v)", value, path, x != text, y != data)
		default:
			shown++
		}
	})
	if shown < least {
		t.Errorf("of %T %d fields are shown, and at least %d should be", value, shown, least)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestFoldsHaveNoPolicy: a decision that a scope comes home is by its prefix alone, and shows no policy of zeros.
func TestFoldsHaveNoPolicy(t *testing.T) {
	mo := vary.Motion()
	mo.Mutation = mutationOf(scope.Govern, scope.Folding([]byte("/a/")))
	id := mo.ID()
	r := &aweighv1.MotionResponse{Motion: &aweighv1.Motion{Id: id[:], Fate: "open", Opening: canon.Encode(mo), Mutation: mo.Mutation}}
	for _, f := range []Format{Table, JSON} {
		var out bytes.Buffer
		must(t, Printer{Out: &out, Format: f}.Motion(r))
		if text := out.String(); strings.Contains(text, "POLICY") || strings.Contains(text, "epoch.blocks") || !strings.Contains(text, "/a/") {
			t.Errorf("it shows\n%s", text)
		}
	}
}
