package audit_test

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/aweigh/aweigh"
	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/internal/audit"
	"github.com/aweigh/aweigh/lineage"
	"github.com/aweigh/aweigh/scope"
)

// TestTrailsShowEveryChange: the trail of a real network verifies as a whole, from a revision or an entry on, of a
// prefix, and as a file that grew by several runs; and it holds no value.
func TestTrailsShowEveryChange(t *testing.T) {
	t.Parallel()
	n := newNetwork(t)
	n.write(t, 0, 7)
	whole := n.trail(t, &aweighv1.TailRequest{})
	size := int64(len(whole) - 1)
	later := n.trail(t, &aweighv1.TailRequest{SinceIndex: 4})
	part := n.trail(t, &aweighv1.TailRequest{Prefix: []byte("/a/")})
	n.write(t, 7, 9)
	grown := slices.Concat(part, n.trail(t, &aweighv1.TailRequest{SinceIndex: size, Prefix: []byte("/a/")}))
	twice := slices.Concat(whole[:5], n.trail(t, &aweighv1.TailRequest{SinceIndex: 5}))
	for name, x := range map[string]struct {
		lines          []string
		changes, first int64
		prefix         string
	}{
		"whole": {whole, size, 0, ""}, "later": {later, size - 4, 4, ""}, "of a prefix": {part, 7, 0, "/a/"},
		"of a prefix, grown": {grown, 9, 0, "/a/"}, "begun again where there was no head": {twice, size + 3, 0, ""},
	} {
		r, err := n.verify(x.lines, func(o *audit.Options) { o.Prefix = []byte(x.prefix) })
		if err != nil {
			t.Errorf("%s: %v\n%s", name, err, strings.Join(x.lines, ""))
			continue
		}
		if r.Changes != x.changes || r.First != x.first || r.Bare != 0 || r.Next != r.First+r.Changes+r.Hidden {
			t.Errorf("%s: %+v, want %d changes from %d on", name, r, x.changes, x.first)
		}
	}
	revision := int64(0)
	for _, line := range whole {
		var c audit.Change
		if err := json.Unmarshal([]byte(line), &c); err != nil {
			t.Fatal(err)
		}
		if c.Kind == audit.KindChange && c.Index == 3 {
			revision = c.Revision
		}
	}
	if got := n.trail(t, &aweighv1.TailRequest{SinceRevision: revision}); !strings.Contains(got[1],
		fmt.Sprintf(`"revision":%d,`, revision)) ||
		!strings.Contains(got[0], `"kind":"gap"`) || strings.Contains(whole[2],
		fmt.Sprintf(`"revision":%d,`, revision)) != strings.Contains(got[1], `"index":2,`) {
		t.Errorf("from revision %d on:\n%s", revision, strings.Join(got[:2], ""))
	}
	for _, line := range slices.Concat(whole, grown) {
		for _, form := range []string{secret, hex.EncodeToString([]byte(secret)), "dGhlLXZhbHVlLW9mLWV2ZXJ5LWtle"} {
			if strings.Contains(line, form) {
				t.Errorf("a line holds a value: %s", line)
			}
		}
	}
}

// TestChangedTrailsAreRefused changes, removes, adds and moves each line, and each part of each line, and wants the
// number of the line that is wrong, or of one after it where only a later line can show it.
func TestChangedTrailsAreRefused(t *testing.T) {
	t.Parallel()
	n := newNetwork(t)
	n.write(t, 0, 5)
	lines := n.trail(t, &aweighv1.TailRequest{SinceIndex: 1})
	if _, err := n.verify(lines, nil); err != nil {
		t.Fatal(err)
	}
	number := regexp.MustCompile(`line (\d+)`)
	wrong := func(what string, at int, changed []string) {
		t.Helper()
		_, err := n.verify(changed, nil)
		if !errors.Is(err, audit.ErrTrail) || at > 0 && !slices.Contains(number.FindStringSubmatch(err.Error()),
			fmt.Sprint(at)) {
			t.Errorf("%s: %v, want line %d", what, err, at)
		}
	}
	last := len(lines) - 1
	for i, line := range lines {
		if i < last {
			wrong(fmt.Sprintf("without line %d", i+1), min(i+1, last), slices.Delete(slices.Clone(lines), i, i+1))
			if i > 0 { // the first only states where the trail goes on, as a run that found nothing new does
				wrong(fmt.Sprintf("line %d twice", i+1), i+2, slices.Insert(slices.Clone(lines), i, line))
			}
			moved := slices.Clone(lines)
			moved[i], moved[i+1] = moved[i+1], moved[i]
			wrong(fmt.Sprintf("line %d moved", i+1), 0, moved)
		}
		var fields map[string]json.RawMessage
		if err := json.Unmarshal([]byte(line), &fields); err != nil {
			t.Fatal(err)
		}
		for name, value := range fields {
			for how, other := range tampered(string(value)) {
				old := fmt.Sprintf("%q:%s", name, value)
				if strings.Count(line, old) != 1 {
					t.Fatalf("%s stands %d times in %s", old, strings.Count(line, old), line)
				}
				changed := slices.Clone(lines)
				changed[i] = strings.Replace(line, old, fmt.Sprintf("%q:%s", name, other), 1)
				wrong(fmt.Sprintf("%s of line %d %s", name, i+1, how), 0, changed)
			}
		}
		for how, other := range map[string]string{
			"with a space": strings.Replace(line, ",", ", ", 1), "with a further field": strings.Replace(line, "{",
				`{"value":"x",`, 1),
			"cut off": line[:len(line)-2], "empty": "\n",
		} {
			changed := slices.Clone(lines)
			changed[i] = other
			wrong(fmt.Sprintf("line %d %s", i+1, how), 0, changed)
		}
	}
}

// tampered are other values in place of a JSON value.
func tampered(value string) map[string]string {
	out := map[string]string{"cleared": `""`, "of another kind": `[1]`}
	switch {
	case value[0] == '"' && len(value) > 3:
		at := len(value) / 2
		c := value[at] + 1
		if value[at] == 'f' || value[at] == '9' || value[at] == 'z' {
			c = 'a'
		}
		if value[at-1] != '\\' && value[at] != '\\' && c != '"' && c != '\\' {
			out["changed"] = value[:at] + string(rune(c)) + value[at+1:]
		}
	case value[0] >= '0' && value[0] <= '9':
		out["greater"], out["less"] = value+"0", "0"
		if value == "0" {
			delete(out, "less")
			out["greater"] = "1"
		}
	}
	return out
}

// TestForgedLinesAreFound: a line whose hash was computed anew is found by the block after it, or else by the head.
func TestForgedLinesAreFound(t *testing.T) {
	t.Parallel()
	n := newNetwork(t)
	n.write(t, 0, 5)
	lines := n.trail(t, &aweighv1.TailRequest{})
	for i := range lines[:len(lines)-1] {
		var c audit.Change
		if err := json.Unmarshal([]byte(lines[i]), &c); err != nil {
			t.Fatal(err)
		}
		forged := audit.Forge(t, c, func(e *lineage.Entry) { e.Justification = "another" })
		changed := slices.Clone(lines)
		changed[i] = forged
		_, err := n.verify(changed, nil)
		if !errors.Is(err, audit.ErrTrail) || !strings.Contains(err.Error(),
			fmt.Sprintf("line %d is not that of its entry", i+1)) &&
			!strings.Contains(err.Error(), "of the lines from ") {
			t.Errorf("line %d: %v", i+1, err)
		}
	}
}

// TestForgedBlocksAndRunsAreFound: a header that no anchors signed dates no line, and a file does not go on with
// another history.
func TestForgedBlocksAndRunsAreFound(t *testing.T) {
	t.Parallel()
	n := newNetwork(t)
	n.write(t, 0, 4)
	lines := n.trail(t, &aweighv1.TailRequest{})
	var c audit.Change
	if err := json.Unmarshal([]byte(lines[1]), &c); err != nil || c.Final == "" {
		t.Fatal(err, c)
	}
	redated := slices.Clone(lines)
	redated[1] = audit.Redate(t, c)
	if _, err := n.verify(redated, nil); !errors.Is(err, audit.ErrTrail) || !strings.Contains(err.Error(), "line 2:") {
		t.Errorf("a header that no anchors signed: %v", err)
	}
	size := len(lines) - 1
	later := n.trail(t, &aweighv1.TailRequest{SinceIndex: int64(size)})
	if _, err := n.verify(slices.Concat(lines[:size], later), nil); err != nil {
		t.Fatal(err)
	}
	hash := strings.Index(later[0], `"hashes":["`) + len(`"hashes":["`)
	other := byte('0')
	if later[0][hash] == '0' {
		other = '1'
	}
	later[0] = later[0][:hash] + string(other) + later[0][hash+1:]
	_, err := n.verify(slices.Concat(lines, later), nil)
	if !errors.Is(err, audit.ErrTrail) || !strings.Contains(err.Error(), fmt.Sprintf("line %d:", size+2)) {
		t.Errorf("another history before: %v", err)
	}
}

// TestTrailsAreOfTheirNetwork: a trail does not hold for another network, and goes through the checkpoints of its own
// alone.
func TestTrailsAreOfTheirNetwork(t *testing.T) {
	t.Parallel()
	n := newNetwork(t)
	n.write(t, 0, 3)
	c, err := n.Checkpoint(t.Context(), n.genesis.Network(), 0, false)
	if err != nil {
		t.Fatal(err)
	}
	n.write(t, 3, 5)
	lines := n.trail(t, &aweighv1.TailRequest{})
	if _, err := n.verify(lines, func(o *audit.Options) { o.Network = &aweigh.NetworkID{1} }); !errors.Is(err,
		scope.ErrProof) {
		t.Errorf("of another network: %v", err)
	}
	signed := func([]*scope.Epoch) error { return nil }
	note := func(change func(*lineage.Checkpoint)) func(o *audit.Options) {
		with := c.Checkpoint
		change(&with)
		return func(o *audit.Options) { o.Note, o.NoteSigned = &with, signed }
	}
	if r, err := n.verify(lines, note(func(*lineage.Checkpoint) {})); err != nil || !r.Noted {
		t.Errorf("with a checkpoint: %v", err)
	}
	if _, err := n.verify(lines, note(func(c *lineage.Checkpoint) { c.Head.Root[0]++ })); !errors.Is(err,
		audit.ErrTrail) {
		t.Errorf("with a checkpoint of another history: %v", err)
	}
	if _, err := n.verify(lines, note(func(c *lineage.Checkpoint) { c.Head.Size = 1000 })); !errors.Is(err,
		audit.ErrTrail) {
		t.Errorf("with a checkpoint of later: %v", err)
	}
	bad := errors.New("not signed")
	if _, err := n.verify(lines, func(o *audit.Options) {
		o.Note, o.NoteSigned = &c.Checkpoint, func([]*scope.Epoch) error { return bad }
	}); !errors.Is(err, bad) {
		t.Errorf("with a checkpoint that is not signed: %v", err)
	}
}

// TestTimesAreProven: a trail without what makes its blocks final is refused, and counted where that is allowed.
func TestTimesAreProven(t *testing.T) {
	t.Parallel()
	n := newNetwork(t)
	n.write(t, 0, 3)
	lines := n.trail(t, &aweighv1.TailRequest{})
	final := regexp.MustCompile(`,"final":"[^"]*"`)
	for i := range lines {
		lines[i] = final.ReplaceAllString(lines[i], "")
	}
	if _, err := n.verify(lines, nil); !errors.Is(err, audit.ErrTrail) {
		t.Errorf("nothing proves its times: %v", err)
	}
	r, err := n.verify(lines, func(o *audit.Options) { o.BareTimes = true })
	if err != nil || r.Bare != r.Changes {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestHiddenEntriesAreForTrailsOfAPrefix: hashes take the place of lines only if the verifier knows of which prefix the
// trail is, and all lines agree with that.
func TestHiddenEntriesAreForTrailsOfAPrefix(t *testing.T) {
	t.Parallel()
	n := newNetwork(t)
	n.write(t, 0, 5)
	of := func(prefix string) func(*audit.Options) {
		return func(o *audit.Options) { o.Prefix = []byte(prefix) }
	}
	whole, part := n.trail(t, &aweighv1.TailRequest{}), n.trail(t, &aweighv1.TailRequest{Prefix: []byte("/a/")})
	for i, line := range whole {
		var c audit.Change
		if err := json.Unmarshal([]byte(line), &c); err != nil {
			t.Fatal(err)
		}
		if c.Kind != audit.KindChange || i == 0 {
			continue
		}
		for _, prefix := range []string{"", `"prefix":"/a/",`} {
			hidden := slices.Clone(whole)
			hidden[i] = fmt.Sprintf(`{"kind":"gap","next":"@%d",%s"from":%d,"to":%d,"hashes":[%q]}`+"\n", i+1, prefix, i, i+1, c.Hash)
			for how, change := range map[string]func(*audit.Options){"no prefix": nil, "a prefix": of("/a/")} {
				if _, err := n.verify(hidden, change); !errors.Is(err, audit.ErrTrail) {
					t.Errorf("line %d of a full trail, hidden with %q, verified with %s: %v", i+1, prefix, how, err)
				}
			}
		}
	}
	if r, err := n.verify(part, of("/a/")); err != nil || r.Hidden == 0 {
		t.Errorf("a trail of its prefix: %+v, %v", r, err)
	}
	for _, other := range []string{"", "/", "/a/1", "/b/"} {
		if _, err := n.verify(part, of(other)); !errors.Is(err, audit.ErrTrail) {
			t.Errorf("a trail of /a/, verified as one of %q: %v", other, err)
		}
	}
}
