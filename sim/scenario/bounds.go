package scenario

import (
	"fmt"
	"reflect"
	"strconv"
	"time"

	"github.com/aweigh/aweigh/internal/must"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/scope"
)

// Bounds are what no honest node may hold more of, and the bounds of the program, for which 0 stands for the value of
// production.
type Bounds struct {
	Waiting int            `yaml:"waiting,omitempty"` // bytes of mutations that wait; the node's own limit
	Scope   scope.Bounds   `yaml:"scope,omitempty"`   // of all nodes, in all scopes
	Node    machine.Bounds `yaml:"node,omitempty"`    // of the nodes that At names
	At      []int          `yaml:"at,omitempty"`      // all
}

// knob is one bound of the program.
type knob struct {
	path        string // like bounds.scope.dueleast
	value       reflect.Value
	least, most int64
}

// set gives the bound a value.
func (k *knob) set(n int64) {
	if k.value.CanUint() {
		k.value.SetUint(uint64(n))
	} else {
		k.value.SetInt(n)
	}
}

// get is the value of the bound, 0 if it has none.
func (k *knob) get() int64 {
	if k.value.CanUint() {
		return int64(k.value.Uint())
	}
	return k.value.Int()
}

// knobs are all bounds of the program, in the order of their fields.
func (b *Bounds) knobs() []knob {
	all := knobsOf(nil, "bounds.scope", reflect.ValueOf(&b.Scope).Elem(), reflect.ValueOf(scope.DefaultBounds()))
	return knobsOf(all, "bounds.node", reflect.ValueOf(&b.Node).Elem(), reflect.ValueOf(machine.DefaultBounds()))
}

func knobsOf(all []knob, path string, v, defaults reflect.Value) []knob {
	for i, key := range keys(v.Type()) {
		at := join(path, key)
		if v.Field(i).Kind() == reflect.Struct {
			all = knobsOf(all, at, v.Field(i), defaults.Field(i))
			continue
		}
		most := knob{value: defaults.Field(i)}
		all = append(all, knob{path: at, value: v.Field(i), least: least(v.Type().Field(i)), most: most.get()})
	}
	return all
}

// least is the least value of a bound, as the tag of its field says.
func least(f reflect.StructField) int64 {
	text := f.Tag.Get("least")
	if f.Type == reflect.TypeFor[time.Duration]() {
		d, err := time.ParseDuration(text)
		must.OK(err, "reading the least value of "+f.Name)
		return int64(d)
	}
	n, err := strconv.ParseInt(text, 10, 64)
	must.OK(err, "reading the least value of "+f.Name)
	return n
}

// bounds checks that each bound lies between its least value and that of production.
func (c *checker) bounds(s Scenario) {
	c.within("bounds.waiting", s.Bounds.Waiting, 0, maxWaiting)
	c.numbers("bounds.at", s.Bounds.At, s.Network.Anchors+s.Network.Observers, "node")
	for _, k := range s.Bounds.knobs() {
		if n := k.get(); n != 0 && (n < k.least || n > k.most) {
			c.refuse(k.path, "is %v; it must lie between %v and %v, its value in production", k.value, k.text(k.least), k.text(k.most))
		}
	}
}

// text is how a value of the bound reads.
func (k *knob) text(n int64) string { return fmt.Sprint(reflect.ValueOf(n).Convert(k.value.Type())) }
