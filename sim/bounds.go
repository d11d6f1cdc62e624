package sim

import (
	"reflect"
	"slices"

	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/sim/scenario"
)

// scopeBounds is the bounds that all nodes have alike, complete.
func scopeBounds(b *scenario.Bounds) *scope.Bounds {
	all := b.Scope
	complete(reflect.ValueOf(&all).Elem(), reflect.ValueOf(scope.DefaultBounds()))
	return &all
}

// nodeBounds is the bounds of one node, complete.
func nodeBounds(b *scenario.Bounds, number int) *machine.Bounds {
	all := machine.DefaultBounds()
	if len(b.At) == 0 || slices.Contains(b.At, number) {
		all = b.Node
		complete(reflect.ValueOf(&all).Elem(), reflect.ValueOf(machine.DefaultBounds()))
	}
	return &all
}

// complete gives the fields that are zero their default values.
func complete(v, defaults reflect.Value) {
	for i := range v.NumField() {
		switch f := v.Field(i); {
		case f.Kind() == reflect.Struct:
			complete(f, defaults.Field(i))
		case f.IsZero():
			f.Set(defaults.Field(i))
		}
	}
}

// forgettable reports whether a motion closed, or may have given way to another one, in a world whose bounds allow
// closed motions to be forgotten. Of one that gave way and was forgotten, no record says so.
func (x *watch) forgettable(p *poll) bool {
	return forgets(&x.w.Scenario.Bounds) && (p.fate != 0 || givesWay(&x.w.Scenario.Bounds))
}

// givesWay reports whether the bounds let open motions give way to others.
func givesWay(b *scenario.Bounds) bool {
	s := &b.Scope
	return s.MotionsOpen != 0 || s.MotionsOfOne != 0 || s.MotionBytes != 0 || s.MotionBytesOne != 0
}

// forgets reports whether closed motions may be forgotten, in the block that closes them too.
func forgets(b *scenario.Bounds) bool {
	s := &b.Scope
	return s.MotionsKept != 0 || s.MotionBytes != 0 || s.KeptFor != 0
}
