// Package model checks the rules of consensus (docs/protocol.md, P3 to P16, P25 and P53)
// exhaustively in small worlds: a few anchors, two blocks for each of two or
// three views, one epoch or two, with islands (P53). It has no code but its tests.
//
// The model knows only abstract votes. A certificate exists as soon as votes
// of enough weight do, and every honest anchor may hold it or not; so every
// order, delay and loss of messages is among the runs. Liars are taken to have
// signed everything from the start. One anchor may lose its record, or a part of it,
// at any time (P9), and any anchor may forget its votes in views that it closed.
// Timers may run out at any time, and leaders propose any block that P12 allows.
//
// Rules that are believed safe must show no fork in any reachable state. Each
// broken variant must fork: a checker that has never found anything proves
// nothing. The real engine is compared with the model, so that neither can drift
// from the other (docs/decisions/0038-model-and-engine.md). With AWEIGH_MODEL=large
// in the environment the bounds are wider.
package model
