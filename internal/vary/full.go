package vary

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/action"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/internal/must"
	"github.com/aweigh/aweigh/lineage"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/trust"
	"github.com/aweigh/aweigh/votes"
)

// Key is one that a number makes.
func Key(n byte) votes.PrivateKey {
	seed := make([]byte, 32)
	seed[0] = n
	k, err := votes.KeyFromSeed(votes.Ed25519, seed)
	must.OK(err, "making a key")
	return k
}

// Policy is one in which every field has a value that is not the default.
func Policy() scope.Policy {
	p := scope.DefaultPolicy(quorum.BFT)
	p.Rules = quorum.Rules{
		Mode: quorum.BFT, Notarize: quorum.Rule{Num: 3, Den: 4, MinAnchors: 1}, Finalize: quorum.Rule{Num: 4, Den: 5, MinAnchors: 2},
		Nullify: quorum.Rule{Num: 5, Den: 6, MinAnchors: 3},
	}
	p.EpochBlocks, p.EpochTime = 17, 90*time.Second
	p.Trust.Gain++
	p.Trust.Share, p.Trust.Sponsored, p.Trust.Churn = trust.Ratio{Num: 1, Den: 7}, trust.Ratio{Num: 1, Den: 8}, trust.Ratio{Num: 1, Den: 9}
	p.Transfers = true
	p.Topology = scope.Topology{Split: scope.ConductAct, Rate: 500, Epochs: 2, Rest: 4, Most: 3, Fold: scope.ConductAct, Quiet: 90 * time.Second}
	p.Trust.Group = trust.Group{Least: 4, Most: 9, Tolerates: 2, Load: 1000, Replace: 3}
	p.Limits.ScopeBytes, p.Limits.Rate, p.Limits.TTL = 1500<<20, 1234, 7*time.Second
	p.Children = scope.Bound{Depth: 3, BFT: true, Finalize: quorum.Rule{Num: 5, Den: 6, MinAnchors: 7}, Notice: 72 * time.Hour}
	p.Approvals = []scope.Approval{{
		Matter: scope.Changes, Prefix: []byte("/a \x00,\"/"), Num: 3, Den: 4, Anchors: 3, Window: 72 * time.Hour, Verbs: []string{"pay"},
		Bounds:    []scope.ImpactBound{{Of: scope.ChangedKeys, Limit: 7}},
		Approvers: []scope.Approver{{Name: "alice, of \"accounts\"", Key: Key(9).Public(), Share: 333_333, Required: true}},
	}}
	p.Authors = []scope.Author{{
		Name: "ann,\"a\"", Who: scope.OneKey, Key: Key(8).Public(), Prefixes: [][]byte{[]byte("/a \x00,\"/"), []byte("n/")}, Verbs: []string{"pay", "put"},
		Quota: scope.Quota{Rate: 5, Bytes: 3 << 20, Leases: 7, Motions: 9},
	}}
	p.Partitions = []scope.Partition{{Prefix: []byte("/ship \x00,\"/"), Num: 2, Den: 5, After: 10 * time.Minute, Gather: time.Minute, Window: 168 * time.Hour}}
	p.Actions = action.Table{{Verb: "pay", Class: action.Write, When: "caller.anchor == 'a: \"b\" # c' &&\n  object.exists"}}
	return p
}

// LongAuthor is an entry of a policy whose text has more than 4,096 bytes.
func LongAuthor() scope.Author {
	a := scope.Author{Name: "build", Who: scope.OneKey, Key: Key(7).Public()}
	for i := range 16 {
		a.Prefixes = append(a.Prefixes, fmt.Appendf(nil, "/%02d/%s/", i, strings.Repeat("x", 300)))
	}
	return a
}

// anchor is one with all fields.
func anchor(n byte) scope.Anchor {
	return scope.Anchor{Name: "anchor " + string('a'+rune(n)), Key: Key(n).Public(), Peer: "12D3KooW" + string('a'+rune(n)), Score: trust.Score(n) + 1}
}

// Child is a scope with all fields.
func Child() scope.Child {
	anchors := []scope.Anchor{anchor(1), anchor(2), anchor(4), anchor(5)}
	slices.SortFunc(anchors, func(a, b scope.Anchor) int {
		x, y := a.Key.ID(), b.Key.ID()
		return bytes.Compare(x[:], y[:])
	})
	return scope.Child{Prefix: []byte("/site/"), Name: "the site", Policy: Policy(), Anchors: anchors}
}

// Decision has every field, which none has that can be decided.
func Decision() scope.Decision {
	p, c, a := Policy(), Child(), anchor(3)
	return scope.Decision{
		Kind: scope.Admit, Subject: aweigh.Sum([]byte("subject")), Anchor: &a, Sponsor: aweigh.Sum([]byte("sponsor")),
		Consent: []byte{0xff, 0, 7}, Policy: &p, Child: &c, Score: 700_000, Reason: "because: it -> was so",
	}
}

// Txn is a transaction with all fields.
func Txn() scope.Txn {
	read := scope.Range{Revision: 1, Limit: 2, Sort: scope.ByVersion, Order: scope.Ascending, KeysOnly: true, CountOnly: true, MinMod: 3, MaxMod: 4, MinCreate: 5, MaxCreate: 6}
	compare := scope.Compare{Target: scope.OnVersion, Relation: scope.Equal, Key: []byte("/k"), End: []byte("/l"), Number: 7, Value: []byte("v")}
	op := scope.Op{
		Kind: scope.OpPut, Key: []byte("/k"), End: []byte{0}, Value: []byte("two\nlines"), Lease: 8, Prev: true, IgnoreValue: true, IgnoreLease: true, Range: &read,
	}
	inner := op
	reach := []scope.Reach{{Key: []byte("/k"), End: []byte("/l")}}
	within := scope.Txn{Compare: []scope.Compare{compare}, Success: []scope.Op{op}, Failure: []scope.Op{op}, Reach: reach}
	inner.Txn = &within
	return scope.Txn{Compare: []scope.Compare{compare}, Success: []scope.Op{inner}, Failure: []scope.Op{inner}, Reach: reach}
}

// Mutation has all fields, and a content of a class.
func Mutation(c scope.Class, content any) scope.Mutation {
	m := scope.Mutation{
		Scope: aweigh.Sum([]byte("scope")), Class: c, Author: Key(2).Public().ID(), Content: canon.Encode(content),
		Justification: "because: it -> was\tso", Caller: "cert:alice", Nonce: []byte("0123456789"), ValidUntil: 1_700_000_000_123_456_789,
	}
	if c != scope.Govern && c != scope.Permit && c != scope.Withdraw { // which cannot have any
		m.Grants = [][]byte{Grant().Encode()}
	}
	return m
}

// Grant has all fields, without a signature that verifies.
func Grant() scope.Grant {
	return scope.Grant{
		Scope: aweigh.Sum([]byte("scope")), By: Key(1).Public(), To: Key(2).Public(), Name: "ci", Prefixes: [][]byte{[]byte("/k")},
		Verbs: []string{"put"}, NotAfter: 1_800_000_000_123_456_789, Record: []byte("/tokens/ci"), Object: aweigh.UID{1}, Signature: []byte("signed"),
	}
}

// Motion has all fields.
func Motion() scope.Motion {
	m := Mutation(scope.Write, Txn())
	return scope.Motion{
		Mutation: m.Encode(), Height: 3, Opened: 1_700_000_000_000_000_000, Epoch: 1, Entry: 4, Revision: 5, Deadline: 1_700_000_100_000_000_000,
		Policy: aweigh.Sum([]byte("policy")), Rule: quorum.Rule{Num: 2, Den: 3, MinAnchors: 4}, Success: true,
		Approval: scope.Approval{
			Matter: scope.Changes, Prefix: []byte("/k"), Num: 2, Den: 3, Anchors: 4, Window: time.Hour, Verbs: []string{"pay"}, Approvers: Policy().Approvals[0].Approvers,
			Bounds:   []scope.ImpactBound{{Of: scope.ChangedKeys, Limit: 7}},
			Finalize: quorum.Rule{Num: 2, Den: 3, MinAnchors: 1}, Sponsor: aweigh.Sum([]byte("sponsor")),
		},
		Voters: []scope.Elector{{Name: "a", Key: Key(1).Public(), Weight: 5, Anchor: true, Required: true}},
		Void:   []aweigh.Hash{aweigh.Sum([]byte("void"))},
		Basis:  []scope.Found{{Keys: 6, Newest: 7, TTL: 8, Keeper: aweigh.Sum([]byte("keeper"))}},
		Impact: impact(),
	}
}

func impact() *scope.Impact {
	return &scope.Impact{
		Keys:    1,
		Touched: []scope.Touched{{Key: []byte("/k"), Class: lineage.Insert, Object: aweigh.UID{1}, Found: 2}},
		Reform: &scope.Reform{
			Seats: []scope.Seat{{Anchor: aweigh.Sum([]byte("seat")), Name: "a", Was: 1, Is: 2}},
			Asks:  []scope.Asked{{Of: "of", Was: "was", Is: "is"}},
			Flips: []scope.Flip{{Who: "who", Verb: "put", Prefix: []byte("/p"), May: true, Rule: "rule"}},
			Goes:  &scope.Handed{Keys: 3},
		},
	}
}
