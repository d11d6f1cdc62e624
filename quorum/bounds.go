package quorum

import "github.com/aweigh/aweigh"

// Bounds limits how much an Engine keeps, and how long it waits for leaders. The bounds do not affect safety, so
// anchors may have different ones. The tag of a field is its least value; the constants explain the default values.
type Bounds struct {
	Ahead     aweigh.View `least:"2"`
	SkipAfter int         `least:"1"` // views per anchor
	FullTurn  int         `least:"1"` // wasted views
}

// DefaultBounds returns the bounds of an Engine whose Config sets none.
func DefaultBounds() Bounds { return Bounds{Ahead: Ahead, SkipAfter: skipAfter, FullTurn: fullTurn} }
