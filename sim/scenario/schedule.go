package scenario

import (
	"math/rand/v2"
	"time"
)

// Fate is what a byte of a Scenario.Schedule does to a frame. The zero value is a
// frame with the links' delay and loss.
type Fate struct {
	Lost    bool
	Twice   bool          // it arrives once more, Wait later
	Restart bool          // its receiver restarts, and is down for Wait
	Wait    time.Duration // otherwise: it takes longer by this
}

// The first byte of each fate. Those below byteDelay leave the links' delay and loss.
const (
	byteDelay   = 128 // by sixteenths of a view's time, three views at most
	byteLose    = 176
	byteTwice   = 208 // once more, later by eighths of a view's time
	byteRestart = 224 // its receiver restarts, later by quarters of a view's time
)

// FateOf is the fate for which a byte stands, where a view takes so long.
func FateOf(b byte, view time.Duration) Fate {
	switch {
	case b < byteDelay:
		return Fate{}
	case b < byteLose:
		return Fate{Wait: view / 16 * time.Duration(b-byteDelay+1)}
	case b < byteTwice:
		return Fate{Lost: true}
	case b < byteRestart:
		return Fate{Twice: true, Wait: view / 8 * time.Duration(b-byteTwice+1)}
	}
	return Fate{Restart: true, Wait: view / 4 * time.Duration(b-byteRestart+1)}
}

// DrawSchedule draws a schedule in which one frame of a few has a fate.
func DrawSchedule(r *rand.Rand) []byte {
	bytes, in := make([]byte, 64+r.IntN(1200)), 1+r.IntN(8)
	for i := range bytes {
		if r.IntN(in) == 0 {
			bytes[i] = byte(byteDelay + r.IntN(256-byteDelay))
		}
	}
	return bytes
}
