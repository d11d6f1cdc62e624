package quorum

import "github.com/aweigh/aweigh"

// Bounds are how much an Engine keeps, and how long it waits for leaders. They cost no safety, so anchors may have
// different ones. The least value of each stands in its tag, the reasons for the default values at the constants.
type Bounds struct {
	Ahead     aweigh.View `least:"2"`
	SkipAfter int         `least:"1"` // views per anchor
	FullTurn  int         `least:"1"` // wasted views
}

// DefaultBounds are those of an Engine that is given no others.
func DefaultBounds() Bounds { return Bounds{Ahead: Ahead, SkipAfter: skipAfter, FullTurn: fullTurn} }
