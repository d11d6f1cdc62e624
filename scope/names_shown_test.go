package scope

import (
	"strings"
	"testing"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/plain"
	"github.com/aweigh/aweigh/quorum"
)

// TestNamesShowInFull: no anchor, author, approver, scope or network has a name that looks like another one, because a
// part of it does not show.
func TestNamesShowInFull(t *testing.T) {
	const peer = "12D3KooWGzxzKZYveHXtpG6AsrUJBcWxHBFS2HsEoGTxrMLvKXtf"
	key := testKey(t, 9).Public()
	genesis := func(change func(g *Genesis)) error {
		g, _ := testGenesis(t, 4)
		change(&g)
		_, err := g.Check()
		return err
	}
	child := func(name, anchor string) error {
		g, _ := testGenesis(t, 4)
		c := Child{Prefix: []byte("/site/"), Name: name, Policy: DefaultPolicy(quorum.BFT), Anchors: g.Anchors}
		c.Anchors[2].Name = anchor
		return (&Decision{Kind: Delegate, Child: &c}).Check()
	}
	for what, check := range map[string]func(name string) error{
		"an applicant": func(name string) error {
			d := Application(key, name, peer, aweigh.Hash{1})
			return d.Check()
		},
		"a readmitted anchor": func(name string) error {
			return (&Decision{Kind: Readmit, Subject: key.ID(), Anchor: &Anchor{Name: name, Key: key, Peer: peer}}).Check()
		},
		"an author": func(name string) error { return (&Author{Name: name, Who: Anyone}).Check() },
		"an approver": func(name string) error {
			p := OpenPolicy(quorum.BFT)
			p.Approvals = []Approval{{
				Matter: Changes, Prefix: []byte("/a/"), Num: 1, Den: 2, Window: time.Hour,
				Approvers: []Approver{{Name: name, Key: key, Share: 1000}},
			}}
			return p.Check()
		},
		"a child":           func(name string) error { return child(name, "b") },
		"a child's anchor":  func(name string) error { return child("site", name) },
		"a network":         func(name string) error { return genesis(func(g *Genesis) { g.Name = name }) },
		"a founding anchor": func(name string) error { return genesis(func(g *Genesis) { g.Anchors[1].Name = name }) },
		"a grant": func(name string) error {
			g := Grant{Name: name, Scope: aweigh.Hash{1}, By: key, To: testKey(t, 8).Public(), NotAfter: 1}
			return g.check(MostLimits().KeyBytes)
		},
	} {
		for _, name := range []string{"node1", "Åbo", "東京"} {
			if err := check(name); err != nil {
				t.Errorf("%s called %q: %v", what, name, err)
			}
		}
		for _, r := range " \ufe0f\u202e\u200b\u3164\u2800\u034f\u115f\uffa0\u180b\u17b4\u00a0\U000e0101\x1b" {
			err := check("node1" + string(r))
			if err == nil {
				t.Errorf("%s is called node1 with %U", what, r)
			} else if strings.ContainsFunc(err.Error(), plain.Hidden) {
				t.Errorf("%s with %U: the error hides it: %q", what, r, err)
			}
		}
		if check("node1\xff") == nil {
			t.Errorf("the name of %s is not UTF-8", what)
		}
	}
}
