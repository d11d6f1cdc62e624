package report

import (
	"slices"
	"time"
)

// stretch maps time to places like a linear scale, but cuts out times at which
// nothing happens.
type stretch struct {
	pieces []piece
	total  float64 // of all pieces
}

// piece is a stretch of time and the room that it takes.
type piece struct {
	from, to    time.Duration
	start, room float64 // parts of the whole are divided by stretch.total
	cut         bool
}

// newStretch cuts gaps between instants that are longer than a tenth of the
// rest without them, and than three flights of a message.
func newStretch(from, to time.Duration, instants []time.Duration, flight time.Duration) (s stretch) {
	all := append(slices.Clone(instants), from, to)
	slices.Sort(all)
	all = slices.Compact(all)
	limit := max(3*flight, 1)
	var busy time.Duration
	for i := 1; i < len(all); i++ {
		if gap := all[i] - all[i-1]; gap <= limit {
			busy += gap
		}
	}
	limit = max(limit, busy/10)
	add := func(p piece) {
		p.start = s.total
		s.pieces = append(s.pieces, p)
		s.total += p.room
	}
	begin := from
	edge := limit / 6 // left before and after a cut
	for i := 1; i < len(all); i++ {
		if all[i-1] < from || all[i] > to || all[i]-all[i-1] <= 2*limit {
			continue
		}
		add(piece{from: begin, to: all[i-1] + edge, room: float64(all[i-1] + edge - begin)})
		add(piece{from: all[i-1] + edge, to: all[i] - edge, room: float64(max(limit, busy/8)) * .4, cut: true})
		begin = all[i] - edge
	}
	add(piece{from: begin, to: to, room: float64(max(to-begin, 1))})
	return s
}

// at is the part of the whole at which an instant lies, 0 to 1.
func (s stretch) at(t time.Duration) float64 {
	for _, p := range s.pieces {
		if t <= p.to {
			part := 0.0
			if p.to > p.from {
				part = float64(max(t-p.from, 0)) / float64(p.to-p.from)
			}
			return (p.start + part*p.room) / s.total
		}
	}
	return 1
}

// unit is how long the whole would be at the scale of the pieces that are not cut.
func (s stretch) unit() time.Duration { return time.Duration(s.total) }
