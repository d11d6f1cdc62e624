package sweep

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aweigh/aweigh/sim"
	"github.com/aweigh/aweigh/sim/scenario"
)

// ErrPasses is wrapped by errors about scenarios that do not fail.
var ErrPasses = errors.New("sim: the scenario does not fail")

// shrinkTries is how many scenarios Shrink tries at most.
const shrinkTries = 400

// Fails runs a scenario, and names the way in which it fails: by the invariant
// that breaks first, or of those expected by the one that the scenario names first;
// by no progress; or by a panic. What breaks when more than the budget is at fault
// is another way.
func Fails(ctx context.Context, s scenario.Scenario) (way string, fails bool) {
	defer func() {
		if recover() != nil {
			way, fails = "panic", true
		}
	}()
	r, err := sim.Run(ctx, s, sim.Options{})
	if err != nil {
		return "", false
	}
	return wayOf(r)
}

// FailsBy is Fails of one invariant alone: a scenario that breaks another first, or has
// other expectations, does not fail. s is the scenario to try, which expects no
// invariant to break but that one.
func FailsBy(invariant string, s scenario.Scenario) (scenario.Scenario, func(context.Context, scenario.Scenario) (way string, fails bool)) {
	if len(s.Expect) > 0 {
		s.Expect = []string{invariant}
	}
	return s, func(ctx context.Context, s scenario.Scenario) (string, bool) {
		way, fails := Fails(ctx, s)
		return way, fails && (way == invariant || way == invariant+beyondBudget)
	}
}

// beyondBudget ends the name of a way to fail that the fault budget does not rule out.
const beyondBudget = ", beyond the fault budget"

// wayOf names the way in which a run failed.
func wayOf(r *sim.Result) (way string, fails bool) {
	b := r.Culprit()
	switch {
	case b == nil && len(r.Scenario.Expect) > 0:
		return "", false
	case b == nil:
		return "no progress", r.Stuck()
	case r.Faulty > r.Budget:
		return b.Invariant + beyondBudget, true
	}
	return b.Invariant, true
}

// Shrink looks for a smaller scenario that fails in the same way: it takes out
// parts and nodes, and makes numbers less, one after another, first with the
// scenario's own seed and then with others, until it can take out nothing more or
// has made shrinkTries. Each scenario that it keeps passes Check. The mode and the
// expectations stay. If ctx ends, the scenario is the smallest so far, and the
// error that of ctx.
func Shrink(ctx context.Context, s scenario.Scenario, fails func(context.Context, scenario.Scenario) (string, bool), progress func(tried int, best scenario.Scenario)) (scenario.Scenario, error) {
	way, ok := fails(ctx, s)
	switch {
	case ctx.Err() != nil:
		return s, ctx.Err()
	case !ok:
		return s, fmt.Errorf("%w: %s", ErrPasses, s.Name)
	}
	s.Seed = max(1, s.Seed)
	k := shrinker{ctx: ctx, fails: fails, progress: progress, way: way, best: s, seen: make(map[string]bool)}
	for _, k.seeds = range [][]uint64{{s.Seed}, {1, 2, 3, 4}} {
		for before := ""; before != string(k.best.Encode()); {
			before = string(k.best.Encode())
			k.links()
			k.approval()
			k.parts(reflect.ValueOf(k.best), "")
			k.nodes()
			k.numbers()
		}
	}
	return k.best, ctx.Err()
}

// shrinker is the state of Shrink.
type shrinker struct {
	ctx      context.Context
	fails    func(context.Context, scenario.Scenario) (string, bool)
	progress func(int, scenario.Scenario)
	way      string
	seeds    []uint64 // each trial runs with each of them
	best     scenario.Scenario
	seen     map[string]bool // trials so far, encoded
	tried    int
}

// try keeps a scenario if it fails in the same way with one of the seeds.
func (k *shrinker) try(s scenario.Scenario) bool {
	if k.tried >= shrinkTries || k.ctx.Err() != nil || s.Check() != nil {
		return false
	}
	return slices.ContainsFunc(k.seeds, func(seed uint64) bool {
		s.Seed = seed
		text := string(s.Encode())
		if k.tried >= shrinkTries || k.seen[text] || k.ctx.Err() != nil {
			return false
		}
		k.seen[text] = true
		k.tried++
		way, ok := k.fails(k.ctx, s)
		ok = ok && way == k.way && k.ctx.Err() == nil
		if ok {
			k.best = s
		}
		if k.progress != nil {
			k.progress(k.tried, k.best)
		}
		return ok
	})
}

// set tries the scenario with another value at a path.
func (k *shrinker) set(path, value string) bool {
	s, err := k.best.Set(path, value)
	return err == nil && k.try(s)
}

// links tries links that are all alike, or plainer ones.
func (k *shrinker) links() {
	if l := k.best.Links; l.Model == "constant" && l.Delay == 0 || k.set("links", "{model: constant}") || k.set("links", "null") {
		return
	}
	k.below(reflect.ValueOf(k.best.Links), "links")
}

// approval tries to do without motions, or with fewer.
func (k *shrinker) approval() {
	if k.best.Approval.Motions > 0 && !k.set("approval", "null") {
		k.less("approval.motions")
	}
}

// fixed are parts that stay, or that others than parts take care of.
var fixed = append([]string{"name", "about", "seed", "expect", "network.mode", "network.anchors", "network.observers", "links", "links.model"}, sizes...)

// parts tries to take out the value at a path, or else the values below it.
func (k *shrinker) parts(v reflect.Value, path string) {
	if v.IsZero() || slices.Contains(fixed, path) {
		return
	}
	element := strings.HasSuffix(path, "]")
	if (v.Kind() != reflect.Struct || element) && k.set(path, "null") {
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		k.below(v.Elem(), path)
	case reflect.Struct:
		k.below(v, path)
	case reflect.Slice:
		for i := v.Len() - 1; i >= 0; i-- { // from the end: what goes moves nothing that is still to come
			k.parts(v.Index(i), fmt.Sprintf("%s[%d]", path, i))
		}
	}
}

func (k *shrinker) below(v reflect.Value, path string) {
	for below, f := range scenario.Fields(v, path) {
		k.parts(f, below)
	}
}

// nodes tries to do without nodes: half of them, a quarter, and so on.
func (k *shrinker) nodes() {
	full := k.best.WithDefaults().Network
	for size := (full.Anchors + full.Observers) / 2; size > 0; size /= 2 {
		full = k.best.WithDefaults().Network
		for from := full.Anchors + full.Observers - size; from >= 0; from -= size {
			k.try(without(k.best, from, size))
		}
	}
}

// sizes are the numbers that are one at least, if they are there.
var sizes = []string{"stop", "load.clients", "load.writes", "load.reads", "load.names", "load.dear", "load.programs", "load.keys", "load.acts", "load.probes"}

// numbers tries to make numbers less.
func (k *shrinker) numbers() {
	for _, path := range sizes {
		k.less(path)
	}
	for i := range k.best.Roles {
		for _, key := range []string{"count", "from", "until"} {
			k.less(fmt.Sprintf("cast[%d].%s", i, key))
		}
	}
	for i := range k.best.Faults.Timed {
		for _, key := range []string{"at", "for"} {
			k.less(fmt.Sprintf("faults.timed[%d].%s", i, key))
		}
	}
}

// less tries to make the number or duration at a path less: by half, by a
// quarter, and so on.
func (k *shrinker) less(path string) {
	v := k.best.WithDefaults().Get(path)
	n, unit := v.Int(), int64(1)
	_, period := v.Interface().(time.Duration)
	if period {
		unit = int64(100 * time.Millisecond)
	}
	for step := n / 2 / unit * unit; step > 0; step = step / 2 / unit * unit {
		for n-step > 0 {
			text := strconv.FormatInt(n-step, 10)
			if period {
				text = time.Duration(n - step).String()
			}
			if !k.set(path, text) {
				break
			}
			n -= step
		}
	}
}

// without is the scenario without some nodes, unless no anchor would be left; the
// others are numbered anew.
func without(s scenario.Scenario, from, size int) scenario.Scenario {
	full := s.WithDefaults().Network
	kept := func(list []int) (left []int) {
		for _, n := range list {
			switch {
			case n < from:
				left = append(left, n)
			case n >= from+size:
				left = append(left, n-size)
			}
		}
		return left
	}
	anchors := max(0, min(from+size, full.Anchors)-from) // that go
	if anchors == full.Anchors {
		return s
	}
	if len(s.Network.Trust) == full.Anchors && anchors > 0 {
		s.Network.Trust = slices.Delete(slices.Clone(s.Network.Trust), from, from+anchors)
	}
	s.Network.Anchors = full.Anchors - anchors
	s.Network.Observers = full.Observers - (size - anchors)
	s.Bounds.At = kept(s.Bounds.At)
	roles, timed := s.Roles, s.Faults.Timed
	s.Roles, s.Faults.Timed = nil, nil
	for _, r := range roles {
		named := len(r.Anchors) > 0
		r.Anchors, r.Victims = kept(r.Anchors), kept(r.Victims)
		if !named || len(r.Anchors) > 0 {
			s.Roles = append(s.Roles, r)
		}
	}
	for _, f := range timed {
		named := len(f.Nodes)+len(f.Groups) > 0
		f.Nodes = kept(f.Nodes)
		groups := f.Groups
		f.Groups = nil
		for _, g := range groups {
			if g = kept(g); len(g) > 0 {
				f.Groups = append(f.Groups, g)
			}
		}
		if !named || len(f.Nodes)+len(f.Groups) > 0 {
			s.Faults.Timed = append(s.Faults.Timed, f)
		}
	}
	return s
}
