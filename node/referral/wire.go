package referral

import (
	"errors"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/scope"
)

// MaxBytes bounds the keys and values in one answer.
const MaxBytes = 6 << 20

// ErrUnasked answers a question of no known form.
var ErrUnasked = errors.New("node: no question that is known")

// The questions that nodes ask the anchors of a scope that they do not hold.
const (
	AskLook      = 1 // the result of a transaction that only reads: a scope.Txn; a Looked
	AskResolve   = 2 // the object behind a name: a Name; a Resolved
	AskSubmit    = 3 // to decide on a bundle, and the outcome: the bundle; a list of Receipt
	AskProve     = 4 // the proof of a key's newest change: the key; a scope.KeyProof
	AskReferrals = 5 // the scopes of delegated keys: a RangeList; a list of scope.Referral
	AskHistory   = 6 // the history of an object: a foreignPast; foreignDeeds
	AskJudge     = 7 // the scope's judgment of a verb: a foreignQuery; a foreignSaid
	AskOutcome   = 8 // the outcome of a mutation: its identity; a list of one Receipt, or nothing
	AskEvents    = 9 // the changes since a revision: a Watch; Events
	// AskProveRange asks for the proof of what keys hold: a foreignKeys; a scope.RangePart.
	AskProveRange = 10
	// AskReceive asks to decide about a name that another scope sent, and for the proof of that: a scope.TransferProof
	// both times.
	AskReceive = 11
)

// Question is a question to an anchor of a scope from a node that does not hold the scope.
type Question struct {
	_      struct{} `cbor:",toarray"`
	Kind   uint8
	Newest bool  // the answer must be as new as every write acknowledged before
	At     int64 // as of this revision; 0: the newest of the anchor
	Body   []byte
	Brief  bool // a hash in place of a long body suffices: another anchor gives it whole
}

// Answer is an anchor's answer to a Question.
type Answer struct {
	_        struct{}     `cbor:",toarray"`
	Epoch    aweigh.Epoch // that the scope is in; 0 in one that refuses
	Height   aweigh.Height
	Time     aweigh.Instant // of the block at Height
	Revision int64          // up to which the scope is closed at that block
	Failure  string         // scope.FailureIn; "" if there is none
	Body     []byte
	Digest   []byte // SHA-256 of a body that is left out; empty if none is

	Paid int // bytes of Body that the asker has paid for; not on the wire
}

// Said sets the position of an answer to that of a head.
func (a *Answer) Said(h *scope.Head) {
	a.Height, a.Time, a.Revision = h.Height, h.Time, h.ClosedTimestamp()
}

// Shorten leaves out a body that is longer than its hash, if the question permits that, and is of a kind that may.
func (a *Answer) Shorten(ask *Question) {
	if ask.Brief && ask.brevity() && len(a.Body) > len(aweigh.Hash{}) {
		sum := aweigh.Sum(a.Body)
		a.Body, a.Digest = nil, sum[:]
	}
}

// errDigest means that an answer leaves out what it should not, or names it in no known form.
var errDigest = errors.New("it leaves out a body that was asked for")

// whole reports whether the answer has its body.
func (a *Answer) whole() bool { return len(a.Digest) == 0 }

// digest is the hash of the body. The error is errDigest if the answer may not leave it out.
func (a *Answer) digest(brief bool) (aweigh.Hash, error) {
	switch {
	case a.whole():
		return aweigh.Sum(a.Body), nil
	case !brief || len(a.Body) > 0 || len(a.Digest) != len(aweigh.Hash{}):
		return aweigh.Hash{}, errDigest
	}
	return aweigh.Hash(a.Digest), nil
}

// RangeList holds ranges of keys, in the sense of scope.Op.
type RangeList struct {
	_      struct{} `cbor:",toarray"`
	Ranges []KeyRange
}

// KeyRange is one range of a RangeList.
type KeyRange struct {
	_        struct{} `cbor:",toarray"`
	Key, End []byte
}

// ListOf returns ranges as a RangeList.
func ListOf(ranges Ranges) (keys RangeList) {
	ranges(func(key, end []byte) bool {
		keys.Ranges = append(keys.Ranges, KeyRange{Key: key, End: end})
		return true
	})
	return keys
}

// Each is the ranges of a list, as Ranges.
func (l *RangeList) Each(visit func(key, end []byte) bool) bool {
	for _, r := range l.Ranges {
		if !visit(r.Key, r.End) {
			return false
		}
	}
	return true
}

// Name asks what a name stands for.
type Name struct {
	_       struct{} `cbor:",toarray"`
	Key     []byte
	Version int64 // 0: the newest
}

// Pins reports whether the question may be asked as of a revision that anchors named.
func (a *Question) Pins() bool { return a.Kind == AskLook || a.Kind == AskEvents }

// Proves reports whether an answer to the question is a proof, so that one answer suffices.
func (a *Question) Proves() bool {
	return a.Kind == AskProve || a.Kind == AskReferrals || a.Kind == AskProveRange || a.Kind == AskReceive
}

// brevity reports whether some anchors may answer the question with a hash.
func (a *Question) brevity() bool { return a.Kind != AskSubmit && !a.Proves() }

// cacheable reports whether an answer may be given again for a while.
func (a *Question) cacheable() bool {
	return !a.Newest && a.Kind != AskSubmit && a.Kind != AskEvents && !a.Proves()
}
