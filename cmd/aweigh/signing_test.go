package main

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/aweigh/aweigh"
	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/internal/show"
	"github.com/aweigh/aweigh/internal/vary"
	"github.com/aweigh/aweigh/internal/wysiwys"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
)

// TestNewerDecisionsAreNotSigned: a decision, a policy or a motion with a field that this
// version does not know is refused with an exit code of its own, and so is one that a node
// gives under the name of another.
func TestNewerDecisionsAreNotSigned(t *testing.T) {
	p := scope.OpenPolicy(quorum.BFT)
	p.EpochBlocks++
	d := scope.Decision{Kind: scope.SetPolicy, Policy: &p}
	id := d.ID()
	raw, limits := canon.Encode(d), canon.Encode(p.Limits)
	if _, err := decisionOf(&aweighv1.Proposal{Id: id[:], Decision: raw}); err != nil {
		t.Fatal(err)
	}
	more := append(append([]byte{limits[0] + 1}, limits[1:]...), 7) // one more field
	newer := func(raw []byte) []byte { return bytes.Replace(raw, limits, more, 1) }
	m := vary.Mutation(scope.Govern, d)
	put := vary.Mutation(scope.Write, scope.Txn{Success: []scope.Op{{Kind: scope.OpPut, Key: []byte("/k")}}})
	other := vary.Mutation(scope.Write, scope.Txn{Success: []scope.Op{{Kind: scope.OpDelete, Key: []byte("/k")}}})
	opened := vary.Motion()
	opened.Mutation, opened.Basis = put.Encode(), []scope.Found{{}}
	vote := func(change func(m *aweighv1.Motion)) error {
		id := opened.ID()
		of := &aweighv1.Motion{Id: id[:], Mutation: opened.Mutation, Opening: canon.Encode(opened), Principal: put.Granted()}
		change(of)
		return (&session{told: io.Discard, Printer: show.Printer{Format: show.JSON}}).mayVote(t.Context(), of, "approve", &vouched{own: true})
	}
	if err := vote(func(*aweighv1.Motion) {}); err != nil {
		t.Fatal(err)
	}
	for name, do := range map[string]func() error{
		"another principal": func() error { return vote(func(m *aweighv1.Motion) { m.Principal = m.Id }) },
		"a decision":        func() error { _, err := decisionOf(&aweighv1.Proposal{Id: id[:], Decision: newer(raw)}); return err },
		"another decision": func() error {
			_, err := decisionOf(&aweighv1.Proposal{Id: make([]byte, 32), Decision: raw})
			return err
		},
		"the policy in force":          func() error { _, err := inForce(&aweighv1.TrustResponse{Policy: newer(canon.Encode(p))}); return err },
		"a mutation of a motion":       func() error { _, _, err := wysiwys.Mutation(newer(m.Encode()), nil); return err },
		"another motion":               func() error { return vote(func(m *aweighv1.Motion) { m.Id = make([]byte, 32) }) },
		"a motion without its opening": func() error { return vote(func(m *aweighv1.Motion) { m.Opening = nil }) },
		"another mutation":             func() error { return vote(func(m *aweighv1.Motion) { m.Mutation = other.Encode() }) },
		"an opening of a newer version": func() error {
			return vote(func(m *aweighv1.Motion) { m.Opening = append([]byte{m.Opening[0] + 1}, append(m.Opening[1:], 7)...) })
		},
	} {
		err := do()
		if !errors.Is(err, wysiwys.ErrHidden) || exitCode(err, true) != exitHidden {
			t.Errorf("%s: %v, exit code %d", name, err, exitCode(err, true))
		}
	}
}

// TestWhatIsSignedIsShownInEachFormat: what an anchor is to sign is on standard error before it signs, in all of its
// parts, also where the answer is JSON.
func TestWhatIsSignedIsShownInEachFormat(t *testing.T) {
	base := scope.OpenPolicy(quorum.BFT)
	p := vary.Clone(base)
	author := vary.LongAuthor()
	p.Authors = append(p.Authors, author)
	last := string(author.Prefixes[len(author.Prefixes)-1])
	put := vary.Motion()
	m := vary.Mutation(scope.Write, scope.Txn{Success: []scope.Op{{Kind: scope.OpPut, Key: []byte(last)}}})
	put.Mutation, put.Basis = m.Encode(), []scope.Found{{}}
	applied := scope.Application(vary.Key(5).Public(), "vaasa", "12D3KooWGzxzKZYveHXtpG6AsrUJBcWxHBFS2HsEoGTxrMLvKXtf", aweigh.Hash{1})
	for _, format := range []show.Format{show.Table, show.JSON} {
		for name, x := range map[string]struct {
			do    func(s *session) error
			shows string
		}{
			"a decision": {func(s *session) error {
				_, err := s.signs(t.Context(), &aweighv1.TrustResponse{Policy: canon.Encode(base)}, scope.Decision{Kind: scope.SetPolicy, Policy: &p}, false)
				return err
			}, last},
			"a vote": {func(s *session) error {
				id := put.ID()
				v := &aweighv1.Motion{Id: id[:], Mutation: put.Mutation, Opening: canon.Encode(put), Principal: m.Granted()}
				return s.mayVote(t.Context(), v, "approve", &vouched{own: true})
			}, last},
			"an application": {func(s *session) error {
				return s.mayApply(&aweighv1.GovernResponse{Proposal: &aweighv1.Proposal{Decision: canon.Encode(applied)}}, applied.Sponsor[:], "vaasa")
			}, "name: vaasa\n"},
		} {
			var out bytes.Buffer
			if err := x.do(&session{told: &out, Printer: show.Printer{Format: format}}); err != nil {
				t.Errorf("%s as %s: %v", name, format, err)
			}
			if !strings.Contains(out.String(), x.shows) {
				t.Errorf("%s as %s: shown is %q", name, format, out.String())
			}
		}
	}
}

// TestApplicationsAreThoseThatWereAskedFor: what a node would sign to become an anchor is shown in full, and is refused
// if it is not what the user asked for.
func TestApplicationsAreThoseThatWereAskedFor(t *testing.T) {
	sponsor := aweigh.Sum([]byte("sponsor"))
	d := scope.Application(vary.Key(5).Public(), "vaasa", "12D3KooWGzxzKZYveHXtpG6AsrUJBcWxHBFS2HsEoGTxrMLvKXtf", sponsor)
	other := aweigh.Sum([]byte("other"))
	for name, x := range map[string]struct {
		raw     []byte
		sponsor aweigh.Hash
		name    string
		good    bool
	}{
		"as asked":        {canon.Encode(d), sponsor, "vaasa", true},
		"the node's name": {canon.Encode(d), sponsor, "", true},
		"another sponsor": {canon.Encode(d), other, "vaasa", false},
		"another name":    {canon.Encode(d), sponsor, "turku", false},
		"an eviction":     {canon.Encode(scope.Decision{Kind: scope.Evict, Subject: other}), sponsor, "", false},
		"newer":           {append(canon.Encode(d), 7), sponsor, "vaasa", false},
	} {
		var out bytes.Buffer
		s := &session{told: &out, Printer: show.Printer{Format: show.Table}}
		err := s.mayApply(&aweighv1.GovernResponse{Proposal: &aweighv1.Proposal{Decision: x.raw}}, x.sponsor[:], x.name)
		if (err == nil) != x.good || err != nil && !errors.Is(err, wysiwys.ErrHidden) {
			t.Errorf("%s: %v", name, err)
		}
		if strings.Contains(out.String(), "name: vaasa") != x.good {
			t.Errorf("%s: shown is %q", name, out.String())
		}
	}
}
