package node

import (
	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/scope"
)

// What the anchors of a scope are asked by those who do not hold it.
const (
	ForeignLook    = 1 // what a transaction that only reads finds: a scope.Txn; a Looked
	ForeignResolve = 2 // what a name stands for: a ForeignName; a Resolved
	ForeignSubmit  = 3 // to decide on a bundle, and what became of it: the bundle; foreignReceipts
	ForeignProve   = 4 // the proof of a key's newest change: the key; a scope.KeyProof
	ForeignRefer   = 5 // who decides about keys that are delegated: ForeignKeys; scope.Referrals
	ForeignHistory = 6 // what happened to an object: a foreignPast; foreignDeeds
	ForeignJudge   = 7 // what the scope says to a verb: a foreignQuery; a foreignSaid
	ForeignOutcome = 8 // what became of a mutation: its identity; a foreignReceipt, or nothing
	ForeignEvents  = 9 // what changed since a revision: a foreignWatch; foreignEvents
)

// ForeignAsk is a question to an anchor of a scope from one who does not hold it.
type ForeignAsk struct {
	_      struct{} `cbor:",toarray"`
	Kind   uint8
	Newest bool  // as new as all that was acknowledged before
	At     int64 // as of this revision; 0: the newest there
	Body   []byte
}

// ForeignAnswer is what an anchor says to a ForeignAsk.
type ForeignAnswer struct {
	_        struct{}     `cbor:",toarray"`
	Epoch    aweigh.Epoch // in which the scope is
	Height   aweigh.Height
	Time     aweigh.Instant // of the block at Height
	Revision int64          // up to which the scope is closed there
	Failure  string         // scope.FailureIn; "" if there is none
	Body     []byte

	paid int // bytes of Body that the asker has paid for; not on the wire
}

// said notes as of when an answer is.
func (a *ForeignAnswer) said(h *scope.Head) {
	a.Height, a.Time, a.Revision = h.Height, h.Time, h.Closed()
}

// ForeignKeys are ranges of keys, in the sense of scope.Op.
type ForeignKeys struct {
	_      struct{} `cbor:",toarray"`
	Ranges []ForeignRange
}

// ForeignRange is one of them.
type ForeignRange struct {
	_        struct{} `cbor:",toarray"`
	Key, End []byte
}

// foreignKeys are some ranges, to be asked for.
func foreignKeys(ranges Ranges) (keys ForeignKeys) {
	ranges(func(key, end []byte) bool {
		keys.Ranges = append(keys.Ranges, ForeignRange{Key: key, End: end})
		return true
	})
	return keys
}

// ForeignName asks what a name stands for.
type ForeignName struct {
	_       struct{} `cbor:",toarray"`
	Key     []byte
	Version int64 // 0: the newest
}

// pins reports whether the question may be asked as of a revision that anchors named.
func (a *ForeignAsk) pins() bool { return a.Kind == ForeignLook || a.Kind == ForeignEvents }

// proves reports whether what is answered to the question proves itself, so that one answer is
// enough.
func (a *ForeignAsk) proves() bool { return a.Kind == ForeignProve || a.Kind == ForeignRefer }

// cacheable reports whether an answer may be given again for a while.
func (a *ForeignAsk) cacheable() bool {
	return !a.Newest && a.Kind != ForeignSubmit && a.Kind != ForeignEvents && !a.proves()
}
