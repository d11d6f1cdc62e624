// Package trust is the arithmetic of standing: evidence goes in, scores and
// weights come out.
//
// An anchor's trust belongs to one scope, and only Evidence on that scope's own
// final chain changes it. A Ledger holds the scores; applying evidence to it
// gives another Ledger and a list of Changes with the effect and the reason of
// each piece. So the chain is enough to replay every score, and the scores are
// enough to replay every weight.
//
// There are no ratings, no latencies and no opinions in here, no floating point
// and no clock: only certified events and integers.
package trust
