// Package trust is the arithmetic of standing: evidence goes in, scores and
// weights come out.
//
// An anchor's trust belongs to one scope, and nothing but Evidence that stands
// on that scope's own final chain moves it. A Ledger holds the scores; applying
// evidence to it gives another Ledger and a list of Changes that say, for each
// piece, what it did and why. Whoever has the chain can therefore replay every
// score, and with the scores every weight, without asking anyone.
//
// There are no ratings, no latencies and no opinions in here, no floating point
// and no clock: only certified events and integers.
package trust
