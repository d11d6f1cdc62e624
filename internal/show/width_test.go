package show

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
)

// TestTablesFitATerminal: at usual values no line of a table has more than 120 columns.
func TestTablesFitATerminal(t *testing.T) {
	id, h := []byte{1, 2, 3, 4}, &aweighv1.Header{Height: 7, Node: "node1", Linearizable: true}
	until := time.Now().Add(7 * 24 * time.Hour).UnixNano()
	four := []string{"node1", "node2", "node3", "node4"}
	voters := []*aweighv1.Voter{{Id: id, Name: "alice", Required: true}}
	motions := &aweighv1.MotionsResponse{Header: h, Motions: []*aweighv1.Motion{
		{Id: id, Decision: id, Subject: "set another policy", AuthorName: "node1", Fate: "open", Approve: 550, Needed: 1467, Total: 2200, DeadlineNs: until},
		{Id: id, Decision: id, Subject: "evict node4 (01020304)", AuthorName: "node1", Fate: "approved", ApprovedHeight: 1234, Needed: 1467, Total: 2200},
		{Id: id, Subject: `put "/registry/secrets/production/database/password"`, AuthorName: "node1", Fate: "open", Needed: 1467, Total: 2200, HeadsNeeded: 3,
			Voters: voters, DeadlineNs: until},
		{Id: id, Subject: "put /b", AuthorName: "node1", Fate: "superseded", Needed: 1467, Total: 2200, ClosedNs: until},
	}}
	trust := &aweighv1.TrustResponse{Header: h, Proposals: []*aweighv1.Proposal{
		{Id: id, Motion: id, Kind: "evict", Subject: id, Name: "node4", Sponsored: true, Approvals: [][]byte{id}, Weight: 550, Needed: 1467, LapsesNs: until, Fate: "open"},
		{Id: id, Motion: id, Kind: "admit", Subject: id, Name: "vaasa", Sponsor: id, Weight: 550, Needed: 1467, Heads: 1, HeadsNeeded: 3, LapsesNs: until, Fate: "open"},
		{Id: id, Motion: id, Kind: "policy", Sponsored: true, Approvals: [][]byte{id, id}, Weight: 1100, Needed: 1467, Carried: 123456, Fate: "carried"},
	}}
	for _, name := range four {
		trust.Anchors = append(trust.Anchors, &aweighv1.Standing{Id: []byte(name), Name: name, Standing: "probation", WeighsFrom: 12, Score: 500000,
			Weight: 550, NextWeight: 551, NextSeated: true, Peer: "12D3KooWBkGesNHHF6ijg7wYfgcPzMVWaAQseWUNSQaSkwxkRPfa"})
	}
	scopes := &aweighv1.ScopesResponse{Header: h, Scopes: []*aweighv1.Scope{{
		Prefix: []byte("/registry/secrets/"), Id: id, Mode: "crash", Anchors: four, Held: true, Epoch: 12, Height: 123456, Rate: 950, RateAllowed: 1000,
		Bytes: 5 << 30, BytesAllowed: 8 << 30, FailuresLeft: 1, BlockTimeNs: time.Now().Add(-time.Minute).UnixNano(),
	}}}
	status := &aweighv1.StatusResponse{Header: h, NodeName: "node1", Peers: []*aweighv1.Peer{}}
	for name, write := range map[string]func(Printer) error{
		"motion ls": func(p Printer) error { return p.Motions(motions) },
		"anchor ls": func(p Printer) error { return p.Anchors(trust) },
		"trust":     func(p Printer) error { return p.Trust(trust) },
		"scope ls":  func(p Printer) error { return p.Scopes(scopes, false) },
		"status":    func(p Printer) error { return p.Status(status) },
	} {
		var out bytes.Buffer
		if err := write(Printer{Out: &out, Format: Table}); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(out.String()) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 120 {
				t.Errorf("%s: %d columns: %s", name, n, line)
				break
			}
		}
	}
}

// TestNamesDoNotWidenTables: names as long as they may be leave the other cells of a line within 160 columns, with
// their IDs, and are whole in JSON.
func TestNamesDoNotWidenTables(t *testing.T) {
	id, h := []byte{1, 2, 3, 4}, &aweighv1.Header{Height: 7, Node: "node1", Linearizable: true}
	name := strings.Repeat("a long name, ", 5)
	ids := make([][]byte, 30)
	for i := range ids {
		ids[i] = id
	}
	motion := &aweighv1.Motion{Id: id, Decision: id, Author: id, Subject: "evict " + name, AuthorName: name, Fate: "open", Needed: 1467, Total: 2200,
		Voters: []*aweighv1.Voter{{Id: id, Name: name, Weight: 550, Required: true}}}
	trust := &aweighv1.TrustResponse{Header: h,
		Anchors:   []*aweighv1.Standing{{Id: id, Name: name, Standing: "probation", WeighsFrom: 12, Score: 500000, Weight: 550, Sponsor: id, NextSeated: true}},
		Proposals: []*aweighv1.Proposal{{Id: id, Motion: id, Kind: "admit", Subject: id, Name: name, Sponsor: id, Approvals: ids, Weight: 550, Needed: 1467, Fate: "open"}},
	}
	entries := []*aweighv1.Entry{{Revision: 7, Class: "update", Author: id, AuthorName: name, Mutation: id, Height: 7}}
	status := &aweighv1.StatusResponse{Header: h, Anchors: []*aweighv1.Anchor{{Id: id, Name: name, Weight: 550, State: "signs", Address: "/ip4/127.0.0.1/tcp/7177"}}}
	users := &aweighv1.UsersResponse{Header: h, Users: []*aweighv1.User{{Name: strings.Repeat(name, 5), Roles: []string{"root"}}}}
	for of, write := range map[string]func(Printer) error{
		"motion ls": func(p Printer) error {
			return p.Motions(&aweighv1.MotionsResponse{Header: h, Motions: []*aweighv1.Motion{motion}})
		},
		"motion show": func(p Printer) error { return p.Motion(&aweighv1.MotionResponse{Header: h, Motion: motion}) },
		"anchor ls":   func(p Printer) error { return p.Anchors(trust) },
		"trust":       func(p Printer) error { return p.Trust(trust) },
		"history":     func(p Printer) error { return p.History(&aweighv1.HistoryResponse{Header: h, Entries: entries}) },
		"status":      func(p Printer) error { return p.Status(status) },
		"users show":  func(p Printer) error { return p.Users(users) },
	} {
		var table, full bytes.Buffer
		if err := errors.Join(write(Printer{Out: &table, Format: Table}), write(Printer{Out: &full, Format: JSON})); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(table.String()) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 160 {
				t.Errorf("%s: %d columns: %s", of, n, line)
			}
		}
		if !strings.Contains(full.String(), name) {
			t.Errorf("%s: the name is cut in JSON: %s", of, full.String())
		}
	}
}
