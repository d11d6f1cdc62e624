package scenario

import (
	"bytes"
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/trust"
)

func TestLibraryIsSound(t *testing.T) {
	list := Library()
	if len(list) < 40 {
		t.Errorf("%d scenarios", len(list))
	}
	for _, n := range list {
		s, err := FromLibrary(n.Name)
		if err != nil {
			t.Errorf("%s: %v", n.Name, err)
			continue
		}
		if s.Name != n.Name || n.About == "" || s.About != n.About || !strings.HasSuffix(n.About, ".") || strings.Count(n.About, ". ") > 0 {
			t.Errorf("%s: named %q, about %q", n.Name, s.Name, n.About)
		}
		if over := strings.HasPrefix(n.Name, "over-"); over != (len(s.Expect) > 0) {
			t.Errorf("%s expects %v", n.Name, s.Expect)
		}
		source, err := LibrarySource(n.Name)
		if err != nil {
			t.Fatal(err)
		}
		lines := 0
		for line := range bytes.Lines(source) {
			if !bytes.HasPrefix(line, []byte("# ")) {
				break
			}
			lines++
		}
		if lines < 3 || lines > 6 || !bytes.Contains(source, []byte("# Try: ")) {
			t.Errorf("%s: %d lines of comment above, or none that begins with Try", n.Name, lines)
		}
	}
}

// TestLibraryBeginsWithWhatToRunFirst: then one scenario for each attack and fault, by name, and those that break
// something last.
func TestLibraryBeginsWithWhatToRunFirst(t *testing.T) {
	var names []string
	for _, n := range Library() {
		names = append(names, n.Name)
	}
	rest, ok := names[len(general):], slices.Equal(names[:len(general)], general)
	over := slices.IndexFunc(rest, func(n string) bool { return strings.HasPrefix(n, "over-") })
	if !ok || over < 40 || !slices.IsSorted(rest[:over]) || !slices.IsSorted(rest[over:]) || slices.ContainsFunc(rest[over:], func(n string) bool { return !strings.HasPrefix(n, "over-") }) {
		t.Errorf("the library is listed as %q", names)
	}
}

func TestLibraryShowsEveryAttackAndFault(t *testing.T) {
	seen := make(map[string]bool)
	for _, name := range libraryNames() {
		s, err := FromLibrary(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range s.Roles {
			for _, p := range r.Attacks {
				seen["play "+p] = true
			}
		}
		for _, f := range s.Faults.Timed {
			seen["kind "+f.Kind] = true
		}
	}
	for _, p := range Attacks {
		if !seen["play "+p.Name] {
			t.Errorf("no role makes the attack %s", p.Name)
		}
	}
	for _, k := range FaultKinds {
		if !seen["kind "+k.Name] {
			t.Errorf("no fault is of kind %s", k.Name)
		}
	}
}

// TestLibraryKeepsToTheBudget weighs the liars and the nodes whose disks lie. A
// role by weight states whether it is within the budget or over it.
func TestLibraryKeepsToTheBudget(t *testing.T) {
	for _, name := range libraryNames() {
		s, err := FromLibrary(name)
		if err != nil {
			t.Fatal(err)
		}
		s = s.WithDefaults()
		id := func(a int) aweigh.AnchorID { return aweigh.AnchorID{byte(a >> 8), byte(a), 1} }
		var ledger trust.Ledger
		for a := range s.Network.Anchors {
			score := trust.Score(s.Network.Trust[a%len(s.Network.Trust)])
			ledger = ledger.Apply(trust.DefaultParams(), trust.Evidence{Anchor: id(a), Kind: trust.Founded, Score: score})
		}
		weights, err := ledger.Next(trust.DefaultParams(), 0, quorum.Weights{})
		if err != nil {
			t.Fatal(err)
		}
		weight, total := func(a int) uint64 { return weights.Of(id(a)) }, weights.Total()
		mode, err := quorum.ParseMode(s.Network.Mode)
		if err != nil {
			t.Fatal(err)
		}
		faulty, over := make(map[int]bool), false
		for _, r := range s.Roles {
			for _, a := range r.Anchors {
				if a < s.Network.Anchors {
					faulty[a] = true
				}
			}
			for i := range r.Count {
				faulty[s.Network.Anchors-1-i] = true
			}
			over = over || r.Weight == "over"
			if r.Weight == "budget" && slices.ContainsFunc(s.Roles, func(o Role) bool { return o.Weight == "" }) {
				t.Errorf("%s: this test adds up no budget with other roles", name)
			}
		}
		for _, f := range s.Faults.Timed {
			if f.Lies() {
				for _, a := range f.Nodes {
					faulty[a] = true
				}
				if len(s.Roles) > 0 && s.Roles[0].Weight == "budget" {
					t.Errorf("%s: the roles take the budget, and a disk lies besides", name)
				}
			}
		}
		var lies uint64
		for a := range faulty {
			lies += weight(a)
		}
		over = over || s.Network.Welcome > 0 && s.Expect != nil // the honest admit too many
		over = over || lies > mode.FaultBudget(total)
		if over != strings.HasPrefix(name, "over-") {
			t.Errorf("%s: %d of %d is at fault, where %d may be", name, lies, total, mode.FaultBudget(total))
		}
	}
}

func TestUnknownScenarioSuggestsTheNearest(t *testing.T) {
	for name, want := range map[string]string{"defualt": `"default"`, "over-frok": `"over-fork"`, "../library/default": `"aweigh sim scenarios" lists`} {
		_, err := LibrarySource(name)
		if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
		if _, again := FromLibrary(name); again == nil || again.Error() != err.Error() {
			t.Errorf("%s: %v", name, again)
		}
	}
}

// TestLibraryProposesWhatCanBeRun applies the changes that comments propose,
// each by itself, or together where they stand side by side.
func TestLibraryProposesWhatCanBeRun(t *testing.T) {
	change := regexp.MustCompile(`--(set|nodes|seed) ('[^']+'|[^\s,]+)( ?)`)
	changes := 0
	for _, name := range libraryNames() {
		source, err := LibrarySource(name)
		if err != nil {
			t.Fatal(err)
		}
		base, err := Decode(source)
		if err != nil {
			t.Fatal(err)
		}
		s := base
		for _, m := range change.FindAllStringSubmatch(string(source), -1) {
			path, value, ok := strings.Cut(strings.Trim(m[2], "'"), "=")
			if !ok {
				path, value = map[string]string{"nodes": "network.anchors", "seed": "seed"}[m[1]], m[2]
			}
			if s, err = s.Set(path, value); err == nil {
				err = s.Check()
			}
			if err != nil {
				t.Errorf("%s: %s: %v", name, m[0], err)
			}
			changes++
			if m[3] == "" || err != nil {
				s = base
			}
		}
	}
	if changes < 60 {
		t.Errorf("%d changes found", changes)
	}
}
