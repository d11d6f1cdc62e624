package scenario

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestSetChangesOneValue(t *testing.T) {
	base := Scenario{
		Network: Network{Anchors: 7}, Roles: []Role{{Attacks: []string{"mute"}, Count: 1}, {Attacks: []string{"twins"}, Anchors: []int{2, 3}}},
	}
	for _, c := range []struct {
		path, value string
		want        func(s *Scenario)
	}{
		{"faults.loss", "0.2", func(s *Scenario) { s.Faults.Loss = Whole / 5 }},
		{"faults.loss", "1/4", func(s *Scenario) { s.Faults.Loss = Whole / 4 }},
		{"network.anchors", "10", func(s *Scenario) { s.Network.Anchors = 10 }},
		{"network.anchors", "null", func(s *Scenario) { s.Network.Anchors = 0 }},
		{"network", "{mode: crash}", func(s *Scenario) { s.Network = Network{Mode: "crash"} }},
		{"cast[0].count", "2", func(s *Scenario) { s.Roles[0].Count = 2 }},
		{"cast[1].anchors[0]", "6", func(s *Scenario) { s.Roles[1].Anchors[0] = 6 }},
		{"cast[1].anchors[2]", "6", func(s *Scenario) { s.Roles[1].Anchors = []int{2, 3, 6} }},
		{"cast[2].play", "[flood]", func(s *Scenario) { s.Roles = append(s.Roles, Role{Attacks: []string{"flood"}}) }},
		{"cast[0]", "null", func(s *Scenario) { s.Roles = s.Roles[1:] }},
		{"cast", "[]", func(s *Scenario) { s.Roles = nil }},
		{"cast", "null", func(s *Scenario) { s.Roles = nil }},
		{"load.writes", "100", func(s *Scenario) { s.Load.Writes = 100 }},
		{"heal.within", "1m", func(s *Scenario) { s.Heal = &Heal{Within: time.Minute} }},
		{"heal", "{}", func(s *Scenario) { s.Heal = &Heal{} }},
		{"heal", "null", func(*Scenario) {}},
		{"about", "two: [colons", func(s *Scenario) { s.About = "two: [colons" }},
		{"seed", "18446744073709551615", func(s *Scenario) { s.Seed = 18446744073709551615 }},
		{"faults.timed[0].oneway", "true", func(s *Scenario) { s.Faults.Timed = []Fault{{OneWay: true}} }},
		{"faults.timed", "[{kind: partition, groups: [[0], [1, 2]]}]", func(s *Scenario) {
			s.Faults.Timed = []Fault{{Kind: "partition", Groups: [][]int{{0}, {1, 2}}}}
		}},
	} {
		want := copied(base)
		c.want(&want)
		before := copied(base)
		got, err := base.Set(c.path, c.value)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s=%s: got %+v, %v, want %+v", c.path, c.value, got, err, want)
		}
		if !reflect.DeepEqual(base, before) {
			t.Fatalf("%s=%s changes the scenario that it starts from", c.path, c.value)
		}
	}
}

func copied(s Scenario) Scenario {
	roles := make([]Role, len(s.Roles))
	for i, r := range s.Roles {
		r.Anchors = append([]int(nil), r.Anchors...)
		roles[i] = r
	}
	s.Roles = roles
	return s
}

func TestSetSharesNoHeal(t *testing.T) {
	a := Scenario{Heal: &Heal{Within: time.Second}}
	if b, err := a.Set("heal.within", "2s"); err != nil || a.Heal.Within != time.Second || b.Heal.Within != 2*time.Second {
		t.Errorf("%+v, %+v, %v", a.Heal, b.Heal, err)
	}
}

func TestSetRefusesWithPathAndReason(t *testing.T) {
	base := Scenario{Roles: []Role{{Attacks: []string{"mute"}, Count: 1}}}
	for _, c := range []struct{ path, value, want string }{
		{"", "1", `"" is no path, such as faults.loss`},
		{"faults..loss", "1", `"faults..loss" is no path`},
		{"cast[x].count", "1", `"cast[x].count" is no path`},
		{"cast[0]count", "1", `"cast[0]count" is no path`},
		{"cast[99999999]", "1", `is no path`},
		{"network.anchor", "4", `network: "anchor" is unknown; did you mean "anchors"? Known here are anchors, observers, mode, `},
		{"loss", "4", `"loss" is unknown; did you mean "faults.loss"?`},
		{"heal.zzzzz", "4", `heal: "zzzzz" is unknown; known are within`},
		{"cast.count", "4", `cast: is a list: say cast[0].count`},
		{"network[0]", "4", `network: is no list, so it has no [0]`},
		{"cast[2].count", "4", `cast: has 1 elements, so [2] would leave a gap`},
		{"stop.at", "4", `stop: is one value: nothing is below it`},
		{"stop", "4", `stop: "4" is no duration`},
		{"stop", "", `stop: no value is given; null takes out`},
		{"faults.loss", "2", `faults.loss: "2" is no share`},
		{"load.reads", "0", `load.reads: 0 would mean the default, 15`},
		{"cast[0].play", "mute", `cast[0].play: wants a list, such as [word], not "mute"`},
		{"cast[0].play", "[mut]", `cast[0].play[0]: "mut" is unknown; did you mean "mute"?`},
		{"cast[0].anchors", "[a]", `cast[0].anchors[0]: wants a value such as 5, not "a"`},
		{"cast", "[{", `cast: "[{" is no YAML`},
		{"network", "{anchor: 3}", `network: "anchor" is unknown`},
		{"links.model", "unifrom", `links.model: "unifrom" is unknown; did you mean "uniform"?`},
		{"links.regions", "[ireland, francfurt]", `links.regions[1]: "francfurt" is unknown; did you mean "frankfurt"?`},
	} {
		_, err := base.Set(c.path, c.value)
		if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), ErrInvalid.Error()+": "+c.want) && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s=%s:\n got %v\nwant %s", c.path, c.value, err, c.want)
		}
		if err != nil && strings.Contains(err.Error(), "line ") {
			t.Errorf("%s=%s names a line: %v", c.path, c.value, err)
		}
	}
}
