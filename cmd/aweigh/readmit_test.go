package main

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
)

// TestReadmissionsUnderANameAreItsOwn: a name stands for the anchor that the network knows by it. What another anchor
// proposed under that name with another key or peer is approved by its ID alone.
func TestReadmissionsUnderANameAreItsOwn(t *testing.T) {
	key := func(n byte) votes.PublicKey {
		k, err := votes.KeyFromSeed("ed25519", bytes.Repeat([]byte{n}, 32))
		if err != nil {
			t.Fatal(err)
		}
		return k.Public()
	}
	readmission := func(k votes.PublicKey, peer string) scope.Decision {
		return scope.Decision{Kind: scope.Readmit, Subject: k.ID(), Anchor: &scope.Anchor{Name: "riga", Key: k, Peer: peer}}
	}
	open := func(d scope.Decision) *aweighv1.Proposal {
		return &aweighv1.Proposal{Id: idOf(&d), Kind: "readmit", Subject: d.Subject[:], Name: "riga", Decision: canon.Encode(d)}
	}
	own, elsewhere, another := readmission(key(1), "peer of riga"), readmission(key(1), "another peer"), readmission(key(2), "peer of riga")
	gone := func(s *aweighv1.Standing) { s.Standing = "active" }
	for name, x := range map[string]struct {
		open   []scope.Decision
		ask    string
		change func(*aweighv1.Standing)
		want   *scope.Decision
		why    string // parts of the error, between stars
	}{
		"none is open":             {ask: "riga", want: &own},
		"it is open":               {open: []scope.Decision{own}, ask: "riga", want: &own},
		"among others":             {open: []scope.Decision{elsewhere, own}, ask: "riga", want: &own},
		"with another peer":        {open: []scope.Decision{elsewhere}, ask: "riga", why: "peer of riga*" + elsewhere.ID().String() + "*another peer"},
		"with another key":         {open: []scope.Decision{another}, ask: "riga", why: key(1).String() + "*" + another.ID().String() + "*" + key(2).String()},
		"by its ID":                {open: []scope.Decision{another, own}, ask: another.ID().Short(), want: &another},
		"of one that is not there": {open: []scope.Decision{own}, ask: "riga", change: gone, why: "not barred*open under that name is*" + own.ID().String()},
		"of no such name":          {ask: "vaasa", why: "no anchor is called"},
	} {
		t.Run(name, func(t *testing.T) {
			id := key(1).ID()
			who := &aweighv1.Standing{Id: id[:], Name: "riga", Standing: "barred", Key: key(1).String(), Peer: "peer of riga"}
			if x.change != nil {
				x.change(who)
			}
			r := &aweighv1.TrustResponse{Anchors: []*aweighv1.Standing{who}}
			for _, d := range x.open {
				r.Proposals = append(r.Proposals, open(d))
			}
			got, err := new(session).readmits(r, x.ask)
			if x.want != nil {
				if err != nil || got.ID() != x.want.ID() {
					t.Fatalf("it is %+v, %v", got, err)
				}
				return
			}
			if err == nil || !errors.Is(err, errState) && !errors.Is(err, errAbsent) {
				t.Fatalf("it is %+v, %v", got, err)
			}
			rest := err.Error()
			for part := range strings.SplitSeq(x.why, "*") {
				at := strings.Index(rest, part)
				if at < 0 {
					t.Fatalf("no %q in %v", part, err)
				}
				rest = rest[at:]
			}
		})
	}
}
