package scenario

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/aweigh/aweigh/quorum"
)

func TestCheckRefusesWithLineAndReason(t *testing.T) {
	role := func(text string) string {
		return "network: {anchors: 7}\ncast:\n- {play: [mute], anchors: [6]}\n- " + text
	}
	fault := func(text string) string { return "network: {observers: 2}\nfaults:\n  timed:\n  - " + text }
	refused(t, map[string]string{
		"name: \"a\\nb\"":                             `line 1: name: "a\nb" is not one line of at most 64 letters`,
		"about: " + strings.Repeat("x", 301):          `is not one line of at most 300 letters`,
		"network: {anchors: -1}":                      `line 1: network.anchors: -1 is not within 1 and 4096`,
		"network: {anchors: 4097}":                    `line 1: network.anchors: 4097 is not within 1 and 4096`,
		"network:\n  observers: 65":                   `line 2: network.observers: 65 is not within 0 and 64`,
		"network: {mode: bfd}":                        `line 1: network.mode: "bfd" is unknown; did you mean "bft"?`,
		"network: {finalize: 60%}":                    `line 1: network.finalize: 60% is below 66.6666%, which mode bft asks for`,
		"network: {finalize: 40%, mode: crash}":       `line 1: network.finalize: 40% is below 50%, which mode crash asks for`,
		"network:\n  timing: {view: -1s}":             `line 2: network.timing.view: -1s is not within 0s and 24h0m0s`,
		"network:\n  timing: {view: 2s, maxview: 1s}": `line 2: network.timing.maxview: 1s is less than view, 2s`,
		"links: {model: euclid}":                      `line 1: links.model: "euclid" is unknown; known are uniform, constant, lognormal, regions`,
		"links: {model: regions, regions: [tokio]}":   `line 1: links.regions[0]: "tokio" is unknown; did you mean "tokyo"?`,
		"links: {model: regions, delay: 1s}":          `line 1: links.delay: the model regions has its own`,
		"links: {model: constant, spread: 1s}":        `line 1: links.spread: the model constant has none`,
		"links: {regions: [tokyo]}":                   `line 1: links.regions: the model uniform has none; say model: regions`,
		"links: {most: 25h}":                          `line 1: links.most: 25h0m0s is not within 0s and 24h0m0s`,
		"stop: -5s":                                   `line 1: stop: -5s is not within`,
		"load: {clients: 17}":                         `line 1: load.clients: 17 is not within 1 and 16`,
		"load: {writes: -1}":                          `line 1: load.writes: -1 is not within 1 and 1000000`,
		"load: {reads: 1000001}":                      `line 1: load.reads: 1000001 is not within`,
		"load: {keys: -1}":                            `line 1: load.keys: -1 is not within`,
		"load: {value: 1048577}":                      `line 1: load.value: 1048577 is not within 1 and 1048576`,
		"load: {give: -1s}":                           `line 1: load.give: -1s is not within`,
		"bounds: {waiting: -1}":                       `line 1: bounds.waiting: -1 is not within`,

		role("{anchors: [5]}"):                                                  `line 4: cast[1].play: is missing`,
		role("{play: [equivocat], count: 1}"):                                   `line 4: cast[1].play[0]: "equivocat" is unknown; did you mean "equivocate"?`,
		role("{play: [mute, mute], count: 1}"):                                  `line 4: cast[1].play[1]: "mute" is there twice`,
		role("{play: [twins, mute, fork], count: 1}"):                           `line 4: cast[1].play[2]: "twins" and "fork" do not go together: make them two roles`,
		role("{play: [fork, amnesia], count: 1}"):                               `line 4: cast[1].play[1]: "fork" and "amnesia" do not go together`,
		role("{play: [mute]}"):                                                  `line 4: cast[1]: a role names its liars in one way: anchors, count or weight; here are 0`,
		role("{play: [mute], count: 1, weight: over}"):                          `line 4: cast[1]: a role names its liars in one way: anchors, count or weight; here are 2`,
		role("{play: [mute], weight: bugdet}"):                                  `line 4: cast[1].weight: "bugdet" is unknown; did you mean "budget"?`,
		role("{play: [mute], count: -2}"):                                       `line 4: cast[1].count: -2 is less than 1`,
		role("{play: [mute], count: 9}"):                                        `line 4: cast[1]: 9 liars, but the network has 7 anchors`,
		role("{play: [mute], count: 7}"):                                        `line 4: cast[1]: with it 8 anchors lie, but the network has 7`,
		role("{play: [mute], anchors: [7]}"):                                    `line 4: cast[1].anchors[0]: there is no anchor 7; there are 7, from 0`,
		role("{play: [mute], anchors: [-1]}"):                                   `line 4: cast[1].anchors[0]: there is no anchor -1; there are 7, from 0`,
		role("play: [mute]\n  anchors:\n  - 1\n  - 1"):                          `line 7: cast[1].anchors[1]: anchor 1 is there twice`,
		role("{play: [mute], anchors: [6]}"):                                    `line 4: cast[1].anchors[0]: anchor 6 lies in cast[0] already`,
		role("{play: [mute], anchors: [5], victims: [7]}"):                      `line 4: cast[1].victims[0]: there is no anchor 7`,
		role("{play: [mute], anchors: [5], victims: [0, 5]}"):                   `line 4: cast[1].victims[1]: anchor 5 lies in this role itself`,
		role("{play: [mute], count: 1, from: 2s, until: 2s}"):                   `line 4: cast[1].until: 2s is not after from, 2s`,
		role("{play: [mute], count: 1, every: -2s}"):                            `line 4: cast[1].every: -2s is not within`,
		role("{play: [mute], weight: budget}\n- {play: [flood], weight: half}"): `line 5: cast[2].weight: cast[1] takes all that is left, as its weight is "budget"`,
		role("{play: [mute], weight: over}\n- {play: [flood], weight: over}"):   `line 5: cast[2].weight: cast[1] takes all that is left, as its weight is "over"`,

		fault("{at: 1s}"):                                         `line 4: faults.timed[0].kind: is missing`,
		fault("{kind: crash, at: 10s}"):                           `line 4: faults.timed[0].at: 10s is not before stop, 10s`,
		fault("{kind: crash, at: -1s}"):                           `line 4: faults.timed[0].at: -1s is not within`,
		fault("{kind: crash, for: 25h}"):                          `line 4: faults.timed[0].for: 25h0m0s is not within`,
		fault("{kind: crash, nodes: [8, 9]}"):                     `line 4: faults.timed[0].nodes[1]: there is no node 9; there are 9, from 0`,
		fault("{kind: crash, nodes: [8, 8]}"):                     `line 4: faults.timed[0].nodes[1]: node 8 is there twice`,
		fault("{kind: crash, keep: non}"):                         `line 4: faults.timed[0].keep: "non" is unknown; did you mean "none"?`,
		fault("{kind: cut, keep: all}"):                           `line 4: faults.timed[0].keep: a fault of kind cut has none`,
		fault("{kind: cut, groups: [[0]]}"):                       `line 4: faults.timed[0].groups: a fault of kind cut has none`,
		fault("{kind: cut, oneway: true}"):                        `line 4: faults.timed[0].oneway: a fault of kind cut has none`,
		fault("{kind: cut, rate: 3}"):                             `line 4: faults.timed[0].rate: a fault of kind cut has none`,
		fault("{kind: partition}"):                                `line 4: faults.timed[0].groups: is missing: a partition has sides`,
		fault("{kind: partition, nodes: [0]}"):                    `line 4: faults.timed[0].nodes: a partition has sides`,
		fault("{kind: partition, groups: [[0, 1], []]}"):          `line 4: faults.timed[0].groups[1]: has no nodes`,
		fault("{kind: partition, groups: [[0, 1], [2, 1]]}"):      `line 4: faults.timed[0].groups[1][1]: node 1 is in groups[0] already`,
		fault("{kind: partition, groups: [[0], [9]]}"):            `line 4: faults.timed[0].groups[1][0]: there is no node 9`,
		fault("{kind: partition, groups: [[0,1,2,3,4,5,6,7,8]]}"): `line 4: faults.timed[0].groups[0]: a side with all nodes parts none`,
		fault("{kind: slow, by: -1s}"):                            `line 4: faults.timed[0].by: -1s is not within`,
		fault("{kind: offset, by: -25h}"):                         `line 4: faults.timed[0].by: -25h0m0s is not within -24h0m0s and 24h0m0s`,
		fault("{kind: drift}"):                                    `line 4: faults.timed[0].rate: 0 parts per million is not within -500000 and 500000, without 0`,
		fault("{kind: churn, rate: 1001}"):                        `line 4: faults.timed[0].rate: 1001 restarts is not within 1 and 1000`,

		"approval: {share: 1/2}":                                          `line 1: approval: nothing is put to the vote: say motions`,
		"approval: {motions: 201}":                                        `line 1: approval.motions: 201 is not within 1 and 200`,
		"approval: {motions: 1, anchors: 8}":                              `line 1: approval.anchors: 8 is not within 0 and 7`,
		"approval: {motions: 1, approvers: 33}":                           `line 1: approval.approvers: 33 is not within 0 and 32`,
		"approval: {motions: 1, approvers: 1, required: 2}":               `line 1: approval.required: 2 is not within 0 and 1`,
		"approval: {motions: 1, nodes: 8}":                                `line 1: approval.nodes: 8 is not within 1 and 7`,
		"approval: {motions: 1, window: 10ms}":                            `line 1: approval.window: 10ms is less than a second`,
		"approval: {motions: 1, keys: -1}":                                `line 1: approval.keys: -1 is not within 1 and 1000000`,
		"approval: {motions: 1, delay: 25h}":                              `line 1: approval.delay: 25h0m0s is not within`,
		"govern: [{kind: policy, share: 60%}]":                            `line 1: govern[0].share: nothing is put to the vote`,
		"govern: [{kind: policy, guard: all}]":                            `known are deletions, changes, nothing`,
		"network: {guard: no}":                                            `known are deletions, changes, nothing`,
		"govern: [{kind: policy}]":                                        `say epochblocks, epochtime, share, guard, group, author or mode`,
		"expect: [agrement]":                                              `line 1: expect[0]: "agrement" is unknown; did you mean "agreement"?`,
		"expect: [sound]":                                                 `line 1: expect: nothing may break, since no anchor and no disk lies`,
		"cast: [{play: [mute], weight: over}]\nexpect: [sound, sound]":    `line 2: expect[1]: "sound" is there twice`,
		"cast: [{play: [mute], weight: over}]\nheal: {}\nexpect: [sound]": `line 3: expect: expect and heal: a network whose promise is broken has nothing to come back to`,
		"cast: [{play: [mute], count: 7}]\nheal: {}":                      `line 2: heal: no honest anchor is left to heal`,
		"heal: {within: -1s}":                                             `line 1: heal.within: -1s is not within`,
	})
}

func TestCheckTakesWhatIsAtTheBounds(t *testing.T) {
	for _, text := range []string{
		"network: {anchors: 4096, observers: 64}\nload: {clients: 16, value: 1048576}\nstop: 24h",
		"network: {finalize: 2/3}",
		"network: {finalize: 0.5, mode: crash}",
		"cast: [{play: [mute], count: 7}]",
		"cast: [{play: [mute], weight: half}, {play: [flood], weight: half}, {play: [clock], weight: budget}, {play: [delay], weight: over}]",
		"cast: [{play: [mute], weight: over}]\nexpect: [agreement]",
		"cast: [{play: [mute], count: 6}]\nheal: {}",
		"faults: {timed: [{kind: rollback, nodes: [0]}]}\nexpect: [durable]",
		"approval: {motions: 200, share: 100%, anchors: 7, approvers: 32, required: 32, nodes: 7, window: 1s, delay: 24h}",
		"network: {observers: 1}\nfaults: {timed: [{kind: partition, at: 9999ms, groups: [[7]]}]}",
	} {
		if _, err := Decode([]byte(text)); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestCheckAloneNamesThePath(t *testing.T) {
	s := Scenario{Roles: []Role{{Attacks: []string{"mute"}, Anchors: []int{1, 9}}}}
	err := s.Check()
	if !errors.Is(err, ErrInvalid) || err.Error() != "sim: the scenario makes no sense: cast[0].anchors[1]: there is no anchor 9; there are 7, from 0" {
		t.Errorf("got %v", err)
	}
	if err := (Scenario{Faults: Faults{Loss: Whole + 1}}).Check(); !errors.Is(err, ErrInvalid) {
		t.Errorf("more than everything is lost: %v", err)
	}
}

func TestDefaultsFillZeroesAndNothingElse(t *testing.T) {
	s := Scenario{
		Roles:  []Role{{Attacks: []string{"mute"}, Weight: "budget"}, {Attacks: []string{"mute"}, Rate: 7}},
		Faults: Faults{Timed: []Fault{{Kind: "crash"}, {Kind: "slow"}, {Kind: "cut"}, {Kind: "step", By: -time.Minute}}}, Heal: &Heal{},
	}
	want := Scenario{
		Seed: 1, Stop: 10 * time.Second,
		Network: Network{Anchors: 7, Mode: "bft", Trust: []Share{Whole / 2}, Timing: quorum.Timing{
			View: time.Second, MaxView: 16 * time.Second, Offer: 250 * time.Millisecond, Settle: 100 * time.Millisecond,
		}, EpochBlocks: 10_000, EpochTime: time.Hour, Whole: 64, Judged: 4, Reversal: 8},
		Links: Links{Model: "uniform", Delay: time.Millisecond, Spread: 4 * time.Millisecond, Most: 10 * time.Second},
		Roles: []Role{{Attacks: []string{"mute"}, Weight: "budget", Rate: Whole / 2}, {Attacks: []string{"mute"}, Rate: 7}},
		Faults: Faults{Timed: []Fault{
			{Kind: "crash", Keep: "some"}, {Kind: "slow", By: time.Second}, {Kind: "cut"}, {Kind: "step", By: -time.Minute},
		}},
		Load: Load{Clients: 3, Writes: 30, Reads: 15, Keys: 4, Value: 16, Swap: Whole / 4, Give: 4 * time.Second},
		Heal: &Heal{Within: 3 * time.Minute},
	}
	if got := s.WithDefaults(); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if s.Roles[0].Rate != 0 || s.Faults.Timed[0].Keep != "" || s.Heal.Within != 0 {
		t.Errorf("the scenario itself changed: %+v", s)
	}
	regions := Scenario{Links: Links{Model: "regions"}}.WithDefaults().Links
	if !reflect.DeepEqual(regions, Links{Model: "regions", Regions: Regions, Most: 10 * time.Second}) {
		t.Errorf("got %+v", regions)
	}
	rapid.Check(t, func(t *rapid.T) {
		s := drawValid(t)
		once := s.WithDefaults()
		if twice := once.WithDefaults(); !reflect.DeepEqual(twice, once) {
			t.Fatalf("twice gives %+v, once %+v", twice, once)
		}
		stays(t, reflect.ValueOf(s), reflect.ValueOf(once))
	})
}

// stays demands that no value was replaced but zero.
func stays(t *rapid.T, before, after reflect.Value) {
	switch {
	case before.IsZero() || before.Kind() == reflect.Slice && before.Len() == 0:
	case before.Kind() == reflect.Pointer:
		stays(t, before.Elem(), after.Elem())
	case before.Kind() == reflect.Struct:
		for i := range before.NumField() {
			stays(t, before.Field(i), after.Field(i))
		}
	case before.Kind() == reflect.Slice:
		for i := range before.Len() {
			stays(t, before.Index(i), after.Index(i))
		}
	case !before.Equal(after):
		t.Fatalf("%v became %v", before, after)
	}
}
