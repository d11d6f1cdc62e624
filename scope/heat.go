package scope

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
)

// heat counts where the changes of an epoch go: those of each key, and of each path above it. It keeps the largest
// counters alone, by Space-Saving (Metwally, Agrawal, El Abbadi: Efficient computation of frequent and top-k elements
// in data streams, ICDT 2005): what exceeds one part in Bounds.Heat of all counts is among them, and no count is too
// high by more than its Excess. One change makes up to Bounds.HeatLevels + 1 counts. Changes alone are counted, since
// reads are not on the chain.
type heat struct {
	_        struct{}       `cbor:",toarray"`
	Moved    aweigh.Epoch   // that began with the last split, one that failed, or an order home by itself; 0: none did
	Splits   uint32         // that succeeded, without those that came home since
	Changes  uint64         // in the epoch so far
	Counters []counter      // ordered by prefix; a key's counter follows that of a path with the same bytes
	Streaks  []streak       // of the paths that were busy in the last epoch, ordered by prefix
	Failed   []failed       // splits, the newest last
	Warm     aweigh.Instant // when the last epoch ended in which the scope was not quiet; 0: no such epoch has ended
	Stays    bool           // at the end of the last epoch it was quiet, and could not ask to come home
}

// counter counts the changes below a path, or those of one key.
type counter struct {
	_      struct{} `cbor:",toarray"`
	Prefix []byte
	Key    bool   // of this very key
	Count  uint64 // never too low
	Excess uint64 // by which Count may be too high
}

// streak is for how many epochs in a row a path has been busy.
type streak struct {
	_      struct{} `cbor:",toarray"`
	Prefix []byte
	Epochs uint32
}

// failed is a split that did not succeed. The path is not tried again for some time.
type failed struct {
	_      struct{} `cbor:",toarray"`
	Prefix []byte
	Epoch  aweigh.Epoch // that began with it
	Reason string
}

// sure is how many changes there were at least.
func (c *counter) sure() uint64 { return c.Count - c.Excess }

func (c *counter) compare(prefix []byte, key bool) int {
	if by := bytes.Compare(c.Prefix, prefix); by != 0 || c.Key == key {
		return by
	}
	if key {
		return -1
	}
	return 1
}

const (
	// heatCounters is how many counters a scope keeps. They are part of what every block stores.
	heatCounters = 32
	// heatLevels is how many paths above a key are counted, the shortest first.
	heatLevels = 4
	// heatFailed is how many splits that failed a scope remembers.
	heatFailed = 8
	// heatPrefix is how many bytes, after the scope's own prefix, a path or key has at most that is counted.
	heatPrefix = 128
)

// clone shares no counters.
func (h *heat) clone() *heat {
	c := *h
	c.Counters, c.Streaks, c.Failed = slices.Clone(h.Counters), slices.Clone(h.Streaks), slices.Clone(h.Failed)
	return &c
}

// change counts a change of a key in a scope whose own prefix has so many bytes.
func (h *heat) change(b *Bounds, own int, key []byte) {
	h.Changes++
	for i, levels := own, 0; i < min(len(key)-1, own+b.HeatPrefix) && levels < b.HeatLevels; i++ {
		if key[i] == '/' && i > 0 {
			h.count(b, key[:i+1], false)
			levels++
		}
	}
	if len(key) <= own+b.HeatPrefix {
		h.count(b, key, true)
	}
}

func (h *heat) count(b *Bounds, prefix []byte, key bool) {
	at, found := h.find(prefix, key)
	if found {
		h.Counters[at].Count++
		return
	}
	c := counter{Prefix: bytes.Clone(prefix), Key: key, Count: 1}
	if len(h.Counters) >= b.Heat { // the smallest gives way, the first of several
		least := 0
		for i := range h.Counters {
			if h.Counters[i].Count < h.Counters[least].Count {
				least = i
			}
		}
		c.Excess = h.Counters[least].Count
		c.Count += c.Excess
		h.Counters = slices.Delete(h.Counters, least, least+1)
		if least < at {
			at--
		}
	}
	h.Counters = slices.Insert(h.Counters, at, c)
}

func (h *heat) find(prefix []byte, key bool) (int, bool) {
	return slices.BinarySearchFunc(h.Counters, prefix, func(c counter, p []byte) int { return c.compare(p, key) })
}

// busy is how many changes in so long make a prefix busy.
func (t *Topology) busy(d time.Duration) uint64 {
	ms := uint64(max(d, time.Second) / time.Millisecond) // a shorter epoch shows no rate
	return max(uint64(t.Rate)*ms/1000, 1)
}

// end begins the counts of another epoch, after one that took so long until now. What was busy is remembered.
func (h *heat) end(t *Topology, d time.Duration, now aweigh.Instant) {
	was := h.Streaks
	if t.Fold == ConductOff || t.warm(h.Changes, d) { // in the former nothing is measured
		h.Warm = now
	}
	h.Streaks = nil
	for i := range h.Counters {
		if c := &h.Counters[i]; t.Split != ConductOff && !c.Key && c.sure() >= t.busy(d) {
			h.Streaks = append(h.Streaks, streak{Prefix: c.Prefix, Epochs: streakOf(was, c.Prefix) + 1})
		}
	}
	h.Changes, h.Counters = 0, nil
}

// streakOf is for how many epochs before this one a path was busy.
func streakOf(all []streak, prefix []byte) uint32 {
	i, ok := slices.BinarySearchFunc(all, prefix, func(s streak, p []byte) int { return bytes.Compare(s.Prefix, p) })
	if !ok {
		return 0
	}
	return all[i].Epochs
}

// fail notes that the split of a path failed. A few are remembered.
func (h *heat) fail(b *Bounds, prefix []byte, at aweigh.Epoch, why error) {
	h.Failed = slices.DeleteFunc(h.Failed, func(f failed) bool { return bytes.Equal(f.Prefix, prefix) })
	if len(h.Failed) >= b.HeatFailed {
		h.Failed = slices.Delete(h.Failed, 0, 1)
	}
	h.Failed = append(h.Failed, failed{Prefix: bytes.Clone(prefix), Epoch: at, Reason: reason(why)})
}

// busyPaths are the paths that are busy and could be split off, the best first: that which leaves the least to the
// busier side of a split; of several, that with most changes; and then the last in order, which is the longest of one
// path. A split that leaves nearly all changes in one scope, or moves those of one key, is no help. reason is why there
// is none.
func (h *heat) busyPaths(t *Topology, d time.Duration) (all []*counter, reason string) {
	busy := t.busy(d)
	reason = fmt.Sprintf("no prefix has %s a second", counted(t.Rate, "change"))
	for i := range h.Counters {
		c := &h.Counters[i]
		if c.Key || c.sure() < busy {
			continue
		}
		if key := h.oneKey(i); key != nil {
			reason = fmt.Sprintf("most changes are of one key, %q, which no split divides", key.Prefix)
		} else if h.Changes-c.sure() <= h.Changes/leastLeft {
			reason = fmt.Sprintf("nearly all changes are below %q, so that a split would divide nothing", c.Prefix)
		} else {
			all = append(all, c)
		}
	}
	left := func(c *counter) uint64 { return max(c.sure(), h.Changes-c.sure()) }
	slices.SortStableFunc(all, func(a, b *counter) int {
		return cmp.Or(cmp.Compare(left(a), left(b)), cmp.Compare(b.sure(), a.sure()), bytes.Compare(b.Prefix, a.Prefix))
	})
	return all, reason
}

// leastLeft is the part of the changes that must be left to others, one in so many.
const leastLeft = 64

// oneKey is the key to which three quarters of the changes below the i-th counter's path go; nil: there is none.
func (h *heat) oneKey(i int) *counter {
	c := &h.Counters[i]
	for j := i + 1; j < len(h.Counters) && bytes.HasPrefix(h.Counters[j].Prefix, c.Prefix); j++ {
		if k := &h.Counters[j]; k.Key && k.sure() >= c.sure()-c.sure()/4 {
			return k
		}
	}
	return nil
}

// encode is the encoding, empty if nothing was ever counted.
func (h *heat) encode() []byte {
	if h.Moved == 0 && h.Splits == 0 && h.Changes == 0 && h.Warm == 0 && !h.Stays && len(h.Counters) == 0 && len(h.Streaks) == 0 {
		return nil
	}
	return canon.Encode(*h)
}

// decodeHeat reads what encode wrote. Errors wrap ErrCorrupt.
func decodeHeat(raw []byte) (*heat, error) {
	h := new(heat)
	if len(raw) == 0 {
		return h, nil
	}
	if err := canon.Decode(raw, h); err != nil {
		return nil, fmt.Errorf("%w: the counts of changes: %w", ErrCorrupt, err)
	}
	for i := range h.Counters {
		c := &h.Counters[i]
		if c.Excess > c.Count || i > 0 && h.Counters[i-1].compare(c.Prefix, c.Key) >= 0 {
			return nil, fmt.Errorf("%w: the counts of changes are not in order", ErrCorrupt)
		}
	}
	if !slices.IsSortedFunc(h.Streaks, func(a, b streak) int { return bytes.Compare(a.Prefix, b.Prefix) }) {
		return nil, fmt.Errorf("%w: the paths that were busy are not in order", ErrCorrupt)
	}
	return h, nil
}

func validHeat(raw []byte) bool {
	_, err := decodeHeat(raw)
	return err == nil
}
