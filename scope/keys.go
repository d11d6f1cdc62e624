package scope

import (
	"bytes"
	"encoding/binary"
	"math"

	"github.com/aweigh/aweigh"
)

// In the store, everything of one scope stands under 's' and the first 16
// bytes of the scope's ID, followed by one of these kinds:
const (
	atLease    = 'g' // lease ID(8) -> lease record
	atVersion  = 'k' // escaped key, ^revision(8), ^sub(4) -> version record, newest first
	atChange   = 'e' // revision(8), sub(4) of the last -> run of changes, in their order
	atReceipt  = 'm' // mutation ID -> Receipt
	atExpiry   = 'x' // minute(8), height(8) -> IDs of mutations that are void after that minute
	atObject   = 'u' // UID -> object record
	atLineage  = 'l' // the log of package lineage
	atMotion   = 'o' // motion -> Motion and how it ended
	atVoted    = 'p' // motion, voter, choice(1) -> Recorded ballot
	atOpen     = 'q' // deadline(8), motion -> docketed: an open motion
	atDue      = 'v' // height(8) at which it was carried, motion -> docketed: an open motion that waits for its turn
	atClosed   = 'r' // when it closed(8), motion -> docketed: a closed motion
	atLedger   = 't' // the trust ledger
	atEpoch    = 'c' // the Epoch that the next block belongs to
	atVoid     = 'f' // key -> Voided: an approver that signed both ways
	atIsland   = 'j' // island's ID -> Islanded
	atAside    = 's' // island's ID, key -> SetAside: what did not stand
	atTaken    = 'P' // island's ID, mutation -> nothing: what it changed was taken or set aside
	atHoming   = 'R' // child's ID -> Homing: a scope that comes home
	atHomePart = 'S' // child's ID, index(8) -> part of what it held
	atFolded   = 'V' // revision(8) at which it came home -> folded
	atTerms    = 'T' // start(8) -> pastTerms of an epoch in which islands may be founded
	atWarning  = 'W' // height(8) at which it was carried, motion -> Warning: a contested motion that may be reversed
	atAgenda   = 'd' // decisions that wait for the next epoch
	atMeta     = 'M' // the meta record

	atSent           = 'X' // key -> Sent: it is on its way to another scope
	atReceived       = 'Y' // escaped key, identity of a Sent(32) -> Received: what was decided about it
	atNames          = 'N' // names: how many of these, of aliases and of redirects there are
	atAccess         = 'b' // the Access
	atUsage          = 'U' // name of an entry of authors -> Usage
	atCharge         = 'w' // what(1), its key, lease or motion -> charge
	atAliases        = 'a' // UID -> aliases of an object that has, or had, several
	atDelegated      = 'z' // prefix -> delegated
	atGenesis        = 'O' // what the scope started from
	atRedirect       = 'n' // escaped key -> redirect
	atRedirectExpiry = 'y' // until(8), key -> nothing: redirects in the order in which they end
	// These follow from the leases and from the newest versions of keys:
	atLeaseKey = 'h' // lease ID(8), key -> nothing: the key is attached
	atLeaseEnd = 'i' // expiry(8), lease ID(8) -> nothing
)

// scopeBytes is how many bytes of a scope's ID its keys contain: 128 bits, so that an attacker cannot make two scopes
// share their state.
const scopeBytes = 16

// space builds the store's keys of one scope.
type space [1 + scopeBytes]byte

func spaceOf(id aweigh.ScopeID) (s space) {
	s[0] = 's'
	copy(s[1:], id[:])
	return s
}

// revision is a place in the order of all changes: the transaction's revision
// and the change's place within it.
type revision struct {
	main int64
	sub  uint32
}

// first and last bound the changes of one revision.
func first(main int64) revision { return revision{main: main} }
func last(main int64) revision  { return revision{main: main, sub: math.MaxUint32} }

// next is the place after r.
func (r revision) next() revision {
	if r.sub == math.MaxUint32 {
		return first(r.main + 1)
	}
	return revision{r.main, r.sub + 1}
}

func (r revision) before(o revision) bool {
	return r.main < o.main || r.main == o.main && r.sub < o.sub
}

// revBytes is the length of an encoded revision.
const revBytes = 12

func (r revision) append(b []byte) []byte {
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint64(b, uint64(r.main)), r.sub)
}

func (r revision) appendInverted(b []byte) []byte {
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint64(b, ^uint64(r.main)), ^r.sub)
}

func readInverted(b []byte) revision {
	return revision{int64(^binary.BigEndian.Uint64(b)), ^binary.BigEndian.Uint32(b[8:])}
}

// Keys are escaped so that the store has them in their order, and none is a
// prefix of another: 0x00 becomes 0x00 0xff, and 0x00 0x01 ends the key.
const (
	escape     = 0x00
	escapeZero = 0xff
	escapeEnd  = 0x01
)

func appendEscaped(b, key []byte) []byte {
	for {
		i := bytes.IndexByte(key, escape)
		if i < 0 {
			return append(b, key...)
		}
		b = append(append(b, key[:i]...), escape, escapeZero)
		key = key[i+1:]
	}
}

// unescape is the inverse of appendEscaped; it shares b's memory if it can.
func unescape(b []byte) []byte {
	if bytes.IndexByte(b, escape) < 0 {
		return b
	}
	return bytes.ReplaceAll(b, []byte{escape, escapeZero}, []byte{escape})
}

// version is the store's key of one version of a key.
func (s *space) version(key []byte, at revision) []byte {
	b := make([]byte, 0, len(s)+1+len(key)+2+revBytes)
	return at.appendInverted(s.appendKey(b, key, escapeEnd))
}

// appendKey appends the prefix under which all versions of a key stand, or,
// with escapeEnd+1 for end, the first store's key after them.
func (s *space) appendKey(b, key []byte, end byte) []byte {
	b = append(append(b, s[:]...), atVersion)
	return append(appendEscaped(b, key), escape, end)
}

// versions is the range in the store of all versions of the keys [key, end) in
// the sense of Op.
func (s *space) versions(key, end []byte) (from, to []byte) {
	prefix := append(append(make([]byte, 0, len(s)+1+len(key)), s[:]...), atVersion)
	switch {
	case len(end) == 0:
		return s.appendKey(nil, key, escapeEnd), s.appendKey(nil, key, escapeEnd+1)
	case ToEnd(end):
		to = append(bytes.Clone(s[:]), atVersion+1)
	default:
		to = appendEscaped(bytes.Clone(prefix), end)
	}
	return appendEscaped(prefix, key), to
}

// splitVersion takes the store's key of a version apart: the escaped key, still
// with its end, and the revision.
func (s *space) splitVersion(k []byte) (escaped []byte, at revision, ok bool) {
	if len(k) < len(s)+1+2+revBytes {
		return nil, revision{}, false
	}
	cut := len(k) - revBytes
	return k[len(s)+1 : cut], readInverted(k[cut:]), true
}

// keyOf is the key of an escaped key with its end.
func keyOf(escaped []byte) []byte { return unescape(escaped[:len(escaped)-2]) }

// change is the store's key of the run of changes that ends at a place.
func (s *space) change(at revision) []byte {
	b := make([]byte, 0, len(s)+1+revBytes)
	return at.append(append(append(b, s[:]...), atChange))
}

// at is the store's key of a kind, with what follows it.
func (s *space) at(kind byte, rest ...byte) []byte {
	b := make([]byte, 0, len(s)+1+len(rest))
	return append(append(append(b, s[:]...), kind), rest...)
}

// expiry is the store's key of a list of mutations to forget.
func (s *space) expiry(minute uint64, h aweigh.Height) []byte {
	b := make([]byte, 0, len(s)+17)
	b = append(append(b, s[:]...), atExpiry)
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(b, minute), uint64(h))
}

// ToEnd reports whether the end of a range means "to the end of the key space".
func ToEnd(end []byte) bool { return len(end) == 1 && end[0] == 0 }

// Within reports whether a key lies in [key, end) in the sense of Op.
func Within(k, key, end []byte) bool {
	switch {
	case len(end) == 0:
		return bytes.Equal(k, key)
	case ToEnd(end):
		return bytes.Compare(k, key) >= 0
	}
	return bytes.Compare(k, key) >= 0 && bytes.Compare(k, end) < 0
}

// Overlap reports whether some key may lie in both of two ranges in the sense of Op.
func Overlap(key, end, other, otherEnd []byte) bool {
	return Within(key, other, otherEnd) || Within(other, key, end)
}
