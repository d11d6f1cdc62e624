package scenario

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/quorum"
)

func TestDecodeReadsYAMLAndJSON(t *testing.T) {
	want := Scenario{
		Name: "both", Seed: 18446744073709551615, Network: Network{Anchors: 4, Trust: []Share{0, Whole / 3}, Timing: quorum.Timing{MaxView: 20 * time.Second}},
		Roles:  []Role{{Attacks: []string{"mute"}, Anchors: []int{3}, Until: 90 * time.Second}},
		Faults: Faults{Loss: 50_000, Timed: []Fault{{Kind: "partition", Groups: [][]int{{0, 1}, {2}}, OneWay: true}, {Kind: "step", By: -2 * time.Second}}},
		Heal:   &Heal{},
	}
	for name, text := range map[string]string{
		"block": `
# a comment
name: both
seed: 18446744073709551615
network:
  anchors: 4
  trust: [0, 1/3]
  timing: {maxview: 20s}
cast:
- play: [mute]
  anchors:
  - 3
  until: 1m30s
faults:
  loss: 0.05
  timed:
  - {kind: partition, groups: [[0, 1], [2]], oneway: true}
  - kind: step
    by: -2s
load:
expect: null
heal: {}
`,
		"JSON": `{"name": "both", "seed": 18446744073709551615, "network": {"anchors": 4, "trust": [0, "1/3"], "timing": {"maxview": "20s"}},
	"cast": [{"play": ["mute"], "anchors": [3], "until": "1m30s"}], "load": null,
	"faults": {"loss": 0.05, "timed": [{"kind": "partition", "groups": [[0, 1], [2]], "oneway": true}, {"kind": "step", "by": "-2s"}]},
	"heal": {}, "expect": []}`,
	} {
		if got, err := Decode([]byte(text)); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, %v, want %+v", name, got, err, want)
		}
	}
	if got, err := Decode([]byte("{}")); err != nil || !reflect.DeepEqual(got, Scenario{}) {
		t.Errorf("{}: got %+v, %v", got, err)
	}
}

func TestDecodeRefusesWithLineAndReason(t *testing.T) {
	refused(t, map[string]string{
		"":                        `there is none`,
		"# nothing\n":             `there is none`,
		"---\n":                   `there is none`,
		"name: a\n---\nname: b\n": `line 2: a second document begins`,
		"[1, 2]":                  `line 1: wants keys and values, not a list`,
		"hello":                   `line 1: wants keys and values, not "hello"`,
		"a: b: c":                 `mapping values are not allowed`,
		"name: x\nload:\n\t- y":   `line 3: `,
		"seed: 1\nnetwrk: {}":     `line 2: "netwrk" is unknown; did you mean "network"? Known here are name, about, `,
		"\nloss: 5%":              `line 2: "loss" is unknown; did you mean "faults.loss"?`,
		"rate: 5%":                `line 1: "rate" is unknown; did you mean "cast[0].rate"?`,
		"zebra: 5%":               `line 1: "zebra" is unknown; known are name, about, seed, network, `,
		"network:\n  mod: bft":    `line 2: network: "mod" is unknown; did you mean "mode"?`,
		"load: {}\nload: {}":      `line 2: load: is on line 1 already`,
		"load:\n  ? [a]\n  : b":   `line 2: load: a key is one word, not a list`,
		"seed: x":                 `line 1: seed: wants a value such as 5, not "x"`,
		"seed: -1":                `line 1: seed: wants a value such as 5, not "-1"`,
		"seed: \"5\"":             `line 1: seed: wants a value such as 5, not text in quotes`,
		"seed: 0":                 `line 1: seed: 0 would mean the default, 1`,
		"load:\n  swap: 0":        `line 2: load.swap: 0 would mean the default, 25%`,
		"stop: 0s":                `line 1: stop: 0s would mean the default, 10s`,
		"stop:":                   `line 1: stop: has no value`,
		"heal:\n":                 `line 1: heal: has no value`,
		"stop: 5":                 `line 1: stop: "5" is no duration, such as 250ms, 10s or 3m`,
		"stop: [5s]":              `line 1: stop: wants one value, such as 10s, not a list`,
		"faults:\n  loss: 7":      `line 2: faults.loss: "7" is no share between 0 and 1`,
		"faults:\n  loss: {a: b}": `line 2: faults.loss: wants one value, such as 5%, not keys and values`,
		"expect: agreement":       `line 1: expect: wants a list, such as [word], not "agreement"`,
		"cast: [~]":               `line 1: cast[0]: has no value`,
		"name: &x y":              `line 1: name: references within YAML`,
		"about: &x y\nname: *x":   `line 1: about: references within YAML`,
		"name: !!str 5":           `line 1: name: tags of YAML, such as !!str, are not taken`,
		"network: {anchors: 99999999999999999999}":                          `line 1: network.anchors: wants a value such as 5`,
		"faults: {timed: [{kind: partition, oneway: maybe}]}":               `line 1: faults.timed[0].oneway: wants a value such as true, not "maybe"`,
		"faults:\n  timed:\n  - kind: cut\n\n  - at: 1s\n    kind: partion": `line 6: faults.timed[1].kind: "partion" is unknown; did you mean "partition"?`,
		strings.Repeat("#", MaxSource+1):                                    `its text has 1048577 bytes`,
	})
}

// refused demands an error for each text.
func refused(t *testing.T, cases map[string]string) {
	t.Helper()
	for text, want := range cases {
		s, err := Decode([]byte(text))
		name := text[:min(len(text), 200)]
		switch {
		case !errors.Is(err, ErrInvalid):
			t.Errorf("%q: error %v", name, err)
		case !strings.HasPrefix(strings.TrimPrefix(err.Error(), ErrInvalid.Error()+": "), want) && !strings.HasSuffix(err.Error(), want):
			t.Errorf("%q:\n got %v\nwant %s", name, err, want)
		case !reflect.DeepEqual(s, Scenario{}):
			t.Errorf("%q: a scenario comes with the error", name)
		}
	}
}

func TestEncodeIsWhatPeopleWrite(t *testing.T) {
	const text = `name: "5"
network:
  anchors: 4
cast:
  - play: [mute]
    anchors: [3]
    rate: 12.5%
faults:
  timed:
    - kind: partition
      at: 250ms
      groups: [[0, 1], [2]]
heal: {}
`
	s, err := Decode([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if got := string(s.Encode()); got != text {
		t.Errorf("got\n%s\nwant\n%s", got, text)
	}
}

func TestEncodedScenariosReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawValid(t)
		if err := s.Check(); err != nil {
			t.Fatalf("the test draws nonsense: %v\n%s", err, s.Encode())
		}
		for _, s := range []Scenario{s, s.WithDefaults()} {
			got, err := Decode(s.Encode())
			if err != nil || !reflect.DeepEqual(got, s) {
				t.Fatalf("got %+v, %v, want %+v from\n%s", got, err, s, s.Encode())
			}
		}
	})
}

func TestDrawnScenariosReadBack(t *testing.T) {
	for seed := range testshort.Cases[uint64](60, 300, 300) {
		s := Draw(seed)
		got, err := Decode(s.Encode())
		if err != nil || !reflect.DeepEqual(got.WithDefaults(), s.WithDefaults()) {
			t.Fatalf("seed %d: got %+v, %v from\n%s", seed, got, err, s.Encode())
		}
	}
}

// drawValid is any scenario that passes Check.
func drawValid(t *rapid.T) Scenario {
	number := func(least, most int) int { return rapid.IntRange(least, most).Draw(t, "number") }
	yes := func() bool { return rapid.Bool().Draw(t, "yes") }
	span := func() time.Duration { return time.Duration(rapid.Int64Range(0, int64(maxTime)).Draw(t, "span")) }
	share := func() Share { return Share(number(0, int(Whole))) }
	one := func(list []string) string { return rapid.SampledFrom(list).Draw(t, "one") }
	some := func(below int) []int {
		list := rapid.SliceOfNDistinct(rapid.IntRange(0, below-1), 0, min(below, 4), rapid.ID).Draw(t, "some")
		return list[:len(list):len(list)]
	}
	text := func() string {
		return rapid.StringOfN(rapid.OneOf(rapid.SampledFrom([]rune("'\"#:-?*&!%@`{}[]| ~0nyé")), rapid.RuneFrom([]rune("abc漢😀"))), 0, 20, -1).Draw(t, "text")
	}
	s := Scenario{
		Name: text(), About: text(), Seed: rapid.Uint64().Draw(t, "seed"), Stop: span(),
		Network: Network{
			Anchors: number(1, 50), Observers: number(0, maxObservers), Mode: one([]string{"", "bft", "crash"}),
			Guard: one(append([]string{""}, guards...)),
		},
		Load: Load{
			Clients: number(0, maxClients), Writes: number(0, 100), Keys: number(0, 5), Leases: number(0, 3),
			Value: number(0, maxValue), Swap: share(), Give: span(),
		},
		Bounds: Bounds{Waiting: number(0, maxWaiting)},
	}
	n := &s.Network
	for range number(0, 3) {
		n.Trust = append(n.Trust, share())
	}
	if yes() {
		n.Finalize = Share(number(int(Whole*2/3), int(Whole)))
	}
	n.Timing.View = span()
	if yes() {
		n.Timing.MaxView = max(n.Timing.View, time.Second)
	}
	l := &s.Links
	switch l.Model = one(append([]string{""}, models...)); l.Model {
	case "regions":
		for range number(0, 3) {
			l.Regions = append(l.Regions, one(Regions))
		}
	case "constant":
		l.Delay = span()
	default:
		l.Delay, l.Spread = span(), span()
	}
	free := n.Anchors - 1
	for range number(0, 3) {
		r := Role{Attacks: []string{one(names(Attacks))}, From: span(), Every: span(), Rate: share()}
		if r.Count = number(0, min(free, 3)); r.Count == 0 {
			continue
		}
		free -= r.Count
		r.Victims = some(n.Anchors)
		s.Roles = append(s.Roles, r)
	}
	stop, nodes := s.WithDefaults().Stop, n.Anchors+n.Observers
	for range number(0, 4) {
		f := Fault{Kind: one(names(FaultKinds)), At: span() % stop, For: span(), Nodes: some(nodes)}
		switch f.Kind {
		case "partition":
			if f.Nodes = nil; nodes == 1 {
				continue
			}
			f.Groups, f.OneWay = [][]int{{0}}, yes()
		case "ahead":
			f.By = span()
		case "offset", "step":
			f.By = span() - maxTime/2
		case "drift":
			f.Rate = int64(number(1, maxDrift)) * int64(1-2*number(0, 1))
		case "churn":
			f.Rate = int64(number(1, maxRestarts))
		case "crash":
			f.Keep = one(append([]string{""}, keeps...))
		}
		if len(f.Nodes) == 0 {
			f.Nodes = nil
		}
		s.Faults.Timed = append(s.Faults.Timed, f)
	}
	s.Faults.Loss, s.Faults.Crash = share(), share()
	if yes() {
		s.Approval = Approval{
			Motions: number(1, mostAsked), Share: share(), Anchors: number(0, n.Anchors), Window: time.Second + span()/2,
			Approvers: number(0, mostApprovers), Weight: share(), Keys: number(0, 5), Nodes: number(0, nodes), Delay: span(),
			Withdraw: share(), Against: share(), Absent: share(), Early: share(), Offline: share(), Lost: share(), Twice: share(),
		}
		s.Approval.Required, s.Approval.Fickle = number(0, s.Approval.Approvers), number(0, s.Approval.Approvers)
	}
	if yes() {
		s.Heal = &Heal{Within: span()}
	} else if len(s.Roles) > 0 {
		s.Expect = slices.Clone(names(Invariants)[:number(0, 3)])
	}
	for i := range s.Roles {
		if len(s.Roles[i].Victims) == 0 {
			s.Roles[i].Victims = nil
		}
	}
	if len(s.Expect) == 0 {
		s.Expect = nil
	}
	return s
}

func FuzzDecode(f *testing.F) {
	for _, name := range libraryNames() {
		source, err := LibrarySource(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(source)
	}
	f.Add([]byte(`{"heal": {"within": "1h"}, "name": "~", "seed": 7}`))
	f.Add([]byte("cast: [{play: [mute], weight: over}]\nexpect: [sound]"))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := Decode(data)
		if err != nil {
			if !errors.Is(err, ErrInvalid) {
				t.Fatalf("error %v", err)
			}
			return
		}
		if back, err := Decode(s.Encode()); err != nil || !reflect.DeepEqual(back, s) {
			t.Fatalf("got %+v, %v, want %+v from\n%s", back, err, s, s.Encode())
		}
	})
}
