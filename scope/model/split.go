package model

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aweigh/aweigh/lineage"
	"github.com/aweigh/aweigh/scope"
)

// traffic is where the changes of an epoch go, counted whole: a node counts them within bounds.
type traffic struct {
	total   uint64
	paths   map[string]uint64 // changes below each path
	keys    map[string]uint64 // of each key
	streaks map[string]uint32 // for how many epochs before this one a path was busy
}

// counts adds the changes of a block.
func (m *Model) counts(changes []place) {
	w := &m.traffic
	if w.paths == nil {
		w.paths, w.keys = make(map[string]uint64), make(map[string]uint64)
	}
	own := len(m.genesis.Prefix())
	for _, c := range changes {
		w.total++
		levels := 0
		for i := own; i < len(c.key)-1 && i < own+m.bounds.HeatPrefix && levels < m.bounds.HeatLevels; i++ {
			if c.key[i] == '/' && i > 0 {
				w.paths[c.key[:i+1]]++
				levels++
			}
		}
		if len(c.key) <= own+m.bounds.HeatPrefix {
			w.keys[c.key]++
		}
	}
}

// parts ends the counts of an epoch, and checks what splits off by itself with its end: that the policy permits it,
// that it was busy for long enough, and that the split divides something. What else keeps a node from a split is left
// to nodes, and to the simulator.
func (m *Model) parts() {
	x, w := m.block, &m.traffic
	e := x.told.Epoch
	if x.Header.Next.IsZero() || x.Header.Epoch != e.Number {
		return
	}
	t := &e.Policy.Topology
	took := x.Header.Time.Sub(e.Time)
	busy := max(uint64(t.Rate)*uint64(max(took, time.Second)/time.Millisecond)/1000, 1)
	whole := len(w.paths)+len(w.keys) <= m.bounds.Heat
	for i := range x.told.Log {
		if d := &x.told.Log[i]; d.Class == lineage.Delegate && d.Reason != "" {
			if why := m.wrongSplit(string(d.Key), t, busy, whole); why != "" {
				x.differ = append(x.differ, fmt.Sprintf("%q splits off by itself, %q, and %s", d.Key, d.Reason, why))
			}
		}
	}
	streaks := make(map[string]uint32)
	for path, n := range w.paths { // order-free: each for itself
		if n >= busy && t.Split != scope.ConductOff {
			streaks[path] = w.streaks[path] + 1
		}
	}
	*w = traffic{streaks: streaks}
}

// wrongSplit is why a path does not split off; "" if it may. Where a node had no room for all counts, it knows less.
func (m *Model) wrongSplit(path string, t *scope.Topology, busy uint64, whole bool) string {
	w := &m.traffic
	p, n, policy := []byte(path), w.paths[path], m.block.policy
	lies := func(prefix []byte) bool { return bytes.HasPrefix(prefix, p) || bytes.HasPrefix(p, prefix) }
	switch {
	case t.Split != scope.ConductAct:
		return "the policy does not permit it"
	case n < busy:
		return fmt.Sprintf("it has %d changes, and is busy with %d", n, busy)
	case w.streaks[path]+1 < t.Epochs:
		return fmt.Sprintf("it was busy in %d epochs before this one, and must be in %d", w.streaks[path], t.Epochs-1)
	case len(m.docket.open()) > 0:
		return "a motion is open"
	case slices.ContainsFunc(policy.Partitions, func(q scope.Partition) bool { return lies(q.Prefix) }):
		return "a partition has some of its keys"
	case slices.ContainsFunc(policy.Authors, func(a scope.Author) bool {
		return a.Quota != (scope.Quota{}) && (len(a.Prefixes) == 0 || slices.ContainsFunc(a.Prefixes, lies))
	}):
		return "authors of its keys have a quota"
	case !whole:
		return ""
	case w.total-n <= w.total/64:
		return fmt.Sprintf("it has %d of %d changes", n, w.total)
	}
	for key, k := range w.keys { // order-free: whichever it is
		if strings.HasPrefix(key, path) && k >= n-n/4 {
			return fmt.Sprintf("%q has %d of its %d changes", key, k, n)
		}
	}
	return ""
}
