package scope

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"slices"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/trust"
)

const (
	// recentBlocks is how many blocks back ballots can be reconciled (P27). An anchor
	// can keep a rival's ballot out only if it leads that many blocks in a row.
	recentBlocks = 32
	// timelyBlocks is within how many blocks a ballot counts as in time. Views are
	// pipelined, so a leader seldom holds any ballot on the parent of its block.
	timelyBlocks = 4
	// mostSkipped bounds the views before one block whose leaders are counted.
	mostSkipped = 256
)

// tally counts what the blocks of an epoch so far show of its anchors. It is a
// value: no two tallies share memory that one of them may write.
type tally struct {
	blocks uint64   // of the epoch
	load   uint64   // mutations in them
	early  bool     // the next block ends it, however few they are
	counts []counts // by place in the roster
	judged []judged // likewise; nil: no anchor was judged
	recent []recent // the last blocks of the epoch, oldest first; the newest is the head
}

// counts are what the chain holds of one anchor.
type counts struct{ timely, late, led, nullified uint32 }

// recent is a block whose ballots can still be reconciled.
type recent struct {
	view     aweigh.View
	block    aweigh.Hash
	recorded []byte // bit by place in the roster: the finalize ballot is on the chain
}

func (r *recent) has(seat int) bool { return r.recorded[seat/8]&(1<<(seat%8)) != 0 }

// full reports whether the ballots of all seats are on the chain.
func (r *recent) full(seats int) bool {
	n := 0
	for _, b := range r.recorded {
		n += bits.OnesCount8(b)
	}
	return n == seats
}

// newTally is that of an epoch without blocks.
func newTally(seats int) tally { return tally{counts: make([]counts, seats)} }

func (t *tally) clone() tally {
	c := *t
	c.counts, c.judged = slices.Clone(t.counts), slices.Clone(t.judged)
	c.recent = append(make([]recent, 0, len(t.recent)+1), t.recent...) // a block is to come
	return c
}

// at is the recent block at a height, nil if ballots on it come too late, or it
// is not of the epoch.
func (t *tally) at(h, head aweigh.Height) *recent {
	if h > head || h+aweigh.Height(len(t.recent)) <= head {
		return nil
	}
	return &t.recent[len(t.recent)-1-int(head-h)]
}

// record notes that a ballot is on the chain, carried by the block at a height.
func (t *tally) record(b *Bounds, seat int, of, head, by aweigh.Height) {
	r := t.at(of, head)
	r.recorded = slices.Clone(r.recorded) // other tallies may hold it
	r.recorded[seat/8] |= 1 << (seat % 8)
	if by-of <= aweigh.Height(b.TimelyBlocks) {
		t.counts[seat].timely++
	} else {
		t.counts[seat].late++
	}
}

// add counts a block of the epoch with its mutations, and its view's leader and those of the views
// that were skipped before it.
func (t *tally) add(b *Bounds, e *Epoch, h *Header, block aweigh.Hash, before aweigh.View, mutations int) {
	t.blocks++
	t.load += uint64(mutations)
	t.recent = append(t.recent, recent{view: h.View, block: block, recorded: make([]byte, (len(t.counts)+7)/8)})
	if len(t.recent) > b.RecentBlocks {
		t.recent = slices.Delete(t.recent, 0, 1)
	}
	if seat, ok := e.Roster.Seat(h.Proposer); ok {
		t.counts[seat].led++
	}
	if h.View-before > b.MostSkipped {
		before = h.View - b.MostSkipped
	}
	for v := before + 1; v < h.View; v++ {
		if seat, ok := e.Roster.Seat(quorum.Leader(e.Leaders(), e.Seed(), v)); ok {
			t.counts[seat].nullified++
		}
	}
}

// attendance is the epoch's evidence about the anchor at a place: about the
// blocks whose ballots all had the time to be recorded.
func (t *tally) attendance(b *Bounds, seat int) trust.Attendance {
	n := uint32(0)
	if t.blocks > uint64(b.TimelyBlocks) {
		n = uint32(min(t.blocks-uint64(b.TimelyBlocks), 1<<31))
	}
	c := &t.counts[seat]
	timely := min(c.timely, n)
	a := trust.Attendance{Blocks: n, Timely: timely, Late: min(c.late, n-timely), Led: c.led, Nullified: c.nullified}
	if t.judged != nil {
		j := &t.judged[seat]
		a.With, a.Against, a.Silent = j[with], j[against], j[silent]
	}
	return a
}

// encode is a tally's one encoding.
func (t *tally) encode() []byte {
	width := (len(t.counts) + 7) / 8
	b := make([]byte, 0, 23+16*len(t.counts)+len(t.recent)*(40+width))
	b = binary.BigEndian.AppendUint64(b, t.blocks)
	b = append(b, 0)
	if t.early {
		b[8] = 1
	}
	b = binary.BigEndian.AppendUint64(b, t.load)
	b = binary.BigEndian.AppendUint16(b, uint16(len(t.counts)))
	for i := range t.counts {
		c := &t.counts[i]
		for _, n := range [...]uint32{c.timely, c.late, c.led, c.nullified} {
			b = binary.BigEndian.AppendUint32(b, n)
		}
	}
	b = binary.BigEndian.AppendUint16(b, uint16(len(t.recent)))
	for i := range t.recent {
		r := &t.recent[i]
		b = binary.BigEndian.AppendUint64(b, uint64(r.view))
		b = append(append(b, r.block[:]...), r.recorded...)
	}
	return t.appendJudged(b)
}

// decodeTally reads what encode wrote. Errors wrap ErrCorrupt.
func decodeTally(b []byte) (t tally, err error) {
	bad := fmt.Errorf("%w: a tally of %d bytes", ErrCorrupt, len(b))
	if t.blocks, t.early, err = tallied(b); err != nil {
		return t, err
	}
	t.load = binary.BigEndian.Uint64(b[9:])
	seats := int(binary.BigEndian.Uint16(b[17:]))
	width := (seats + 7) / 8
	if b = b[19:]; len(b) < 16*seats+2 {
		return t, bad
	}
	t.counts = make([]counts, seats)
	for i := range t.counts {
		for j, n := range [...]*uint32{&t.counts[i].timely, &t.counts[i].late, &t.counts[i].led, &t.counts[i].nullified} {
			*n = binary.BigEndian.Uint32(b[4*j:])
		}
		b = b[16:]
	}
	n := int(binary.BigEndian.Uint16(b))
	if b = b[2:]; n > defaults.RecentBlocks || len(b) < n*(40+width) {
		return t, bad
	}
	b = slices.Clone(b)
	t.recent = make([]recent, n)
	for i := range t.recent {
		r := &t.recent[i]
		r.view, r.block = aweigh.View(binary.BigEndian.Uint64(b)), aweigh.Hash(b[8:40])
		r.recorded = b[40 : 40+width : 40+width]
		b = b[40+width:]
	}
	if !t.readJudged(b) {
		return t, bad
	}
	return t, nil
}

// tallied is what a tally's encoding begins with. Errors wrap ErrCorrupt.
func tallied(b []byte) (blocks uint64, early bool, err error) {
	if len(b) < 19 || b[8] > 1 {
		return 0, false, fmt.Errorf("%w: a tally of %d bytes", ErrCorrupt, len(b))
	}
	return binary.BigEndian.Uint64(b), b[8] == 1, nil
}

func validTally(b []byte) bool {
	_, err := decodeTally(b)
	return err == nil
}
