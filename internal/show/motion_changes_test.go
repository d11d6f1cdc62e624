package show

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/aweigh/aweigh"
	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/internal/vary"
	"github.com/aweigh/aweigh/internal/wysiwys"
	"github.com/aweigh/aweigh/scope"
)

func keyed(rev int64, key, value string) *aweighv1.KeyValue {
	return &aweighv1.KeyValue{Key: []byte(key), Value: []byte(value), ModRevision: rev, Version: 1}
}

// TestMotionsAreShownAsTheyOpened: the effects of a motion are shown as its voters
// saw them, with later changes beside them.
func TestMotionsAreShownAsTheyOpened(t *testing.T) {
	put := &aweighv1.MotionChange{Key: []byte("/a"), Value: []byte("new"), Was: []*aweighv1.KeyValue{keyed(4, "/a", "old")}, Now: []*aweighv1.KeyValue{keyed(6, "/a", "other")}}
	gone := &aweighv1.MotionChange{Key: []byte("/a"), Value: []byte("new"), Was: put.Was}
	span := &aweighv1.MotionChange{Delete: true, Key: []byte("/d/"), RangeEnd: []byte("/d0"),
		Was: []*aweighv1.KeyValue{keyed(4, "/d/1", "x"), keyed(4, "/d/2", "y")}, Now: []*aweighv1.KeyValue{keyed(4, "/d/1", "x"), keyed(7, "/d/3", "z")}}
	lost := &aweighv1.MotionChange{Key: []byte("/a"), Value: []byte("new"), Now: put.Now, Lost: true}
	same := &aweighv1.MotionChange{Key: []byte("/a"), Value: []byte("new"), Was: put.Was, Now: put.Was}
	full := &aweighv1.MotionChange{Delete: true, Key: []byte("/d/"), RangeEnd: []byte("/d0")}
	for i := range mostHeld {
		full.Was = append(full.Was, keyed(4, fmt.Sprintf("/d/%03d", i+1), "x"))
	}
	full.Now = append([]*aweighv1.KeyValue{keyed(9, "/d/000", "x")}, full.Was[:mostHeld-1]...)
	for name, v := range map[string]struct {
		fate, doomed string
		change       *aweighv1.MotionChange
		want, not    []string
	}{
		"as it was":     {"open", "", same, []string{"- old  (revision 4)", "+ new"}, []string{"since"}},
		"approved":      {"approved", "it was changed", put, []string{"it would change", "! changed since: other"}, nil},
		"changed":       {"open", "it was changed", put, []string{"- old  (revision 4)", "+ new", "! changed since: other  (revision 6)"}, []string{"- other"}},
		"deleted":       {"open", "it was changed", gone, []string{"- old  (revision 4)", "! deleted since: old"}, nil},
		"a range":       {"open", "it was changed", span, []string{"- /d/1 = x", "- /d/2 = y", "! changed since: /d/3 = z", "! deleted since: /d/2 = y"}, []string{"since: /d/1"}},
		"a large range": {"open", "it was changed", full, []string{"! changed since: /d/000"}, []string{"deleted since"}},
		"closed":        {"void", "", put, []string{"- old  (revision 4)", "+ new"}, []string{"since", "other"}},
		"compacted":     {"open", "", lost, []string{"- other  (revision 6)"}, []string{"since"}},
		"lost":          {"open", "it was changed", lost, []string{"- (compacted away)"}, []string{"other"}},
	} {
		var out bytes.Buffer
		m := &aweighv1.Motion{Fate: v.fate, Doomed: v.doomed, Changes: []*aweighv1.MotionChange{v.change}}
		if err := (Printer{Out: &out, Format: Table}).Motion(&aweighv1.MotionResponse{Motion: m}); err != nil {
			t.Fatal(err)
		}
		for _, want := range v.want {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%s: no %q in\n%s", name, want, out.String())
			}
		}
		for _, not := range v.not {
			if strings.Contains(out.String(), not) {
				t.Errorf("%s: %q in\n%s", name, not, out.String())
			}
		}
		if doomed := strings.Contains(out.String(), "it would be void: it was changed"); doomed != (v.doomed != "") {
			t.Errorf("%s: doomed by %q:\n%s", name, v.doomed, out.String())
		}
	}
}

// TestLeasesOfPutsAreShown: voters see that a key will be deleted with a lease, which lease,
// after how long without renewal, and who can renew it.
func TestLeasesOfPutsAreShown(t *testing.T) {
	m := &aweighv1.Motion{Fate: "open", Changes: []*aweighv1.MotionChange{{
		Key: []byte("/free"), Value: []byte("1"), Lease: 0x1f, Ttl: 15, Keeper: []byte{0xab, 0xcd, 0xef, 0x01, 2}, KeeperName: "node3",
		Was: []*aweighv1.KeyValue{{Key: []byte("/free"), Value: []byte("0"), Lease: 0x2e, Version: 1}},
	}}}
	for format, want := range map[Format][]string{
		Table: {"with lease 1f, of 15s", "node3 (abcdef01)", "lease 2e"},
		JSON:  {`"lease": "1f"`, `"lease_ttl": 15`, `"lease_keeper": "abcdef0102"`, `"lease_keeper_name": "node3"`, `"lease": "2e"`},
	} {
		var out bytes.Buffer
		if err := (Printer{Out: &out, Format: format}).Motion(&aweighv1.MotionResponse{Motion: m}); err != nil {
			t.Fatal(err)
		}
		for _, w := range want {
			if !strings.Contains(out.String(), w) {
				t.Errorf("%s lacks %q:\n%s", format, w, out.String())
			}
		}
	}
}

// TestVotersSeeLeasesBeforeTheySign: what motion show says of a lease comes before a ballot as well, from what the
// motion found when it opened.
func TestVotersSeeLeasesBeforeTheySign(t *testing.T) {
	keeper := aweigh.Hash{0xab, 0xcd, 0xef, 0x01}
	mo := vary.Motion()
	mo.Success, mo.Basis = true, []scope.Found{{}, {TTL: 15, Keeper: keeper}}
	mo.Mutation = mutationOf(scope.Write, scope.Txn{Success: []scope.Op{
		{Kind: scope.OpPut, Key: []byte("/held")}, {Kind: scope.OpRange, Key: []byte("/r")},
		{Kind: scope.OpPut, Key: []byte("/free"), Lease: 0x1f},
	}})
	id := mo.ID()
	read, err := Opening(&aweighv1.Motion{Id: id[:], Mutation: mo.Mutation, Opening: canon.Encode(mo)})
	must(t, err)
	shown, err := wysiwys.Motion(read, nil)
	must(t, err)
	var out bytes.Buffer
	must(t, Printer{Out: &out, Format: Table}.ToVote("motion", read, shown))
	want := "\n/free with lease 1f, of 15s: it is deleted when the lease ends, which its keeper can put off: abcdef01\n"
	if !strings.HasSuffix(out.String(), want) {
		t.Errorf("%s\nends without %q", out.String(), want)
	}
}
