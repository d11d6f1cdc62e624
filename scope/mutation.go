package scope

import (
	"errors"
	"fmt"
	"strings"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/votes"
)

// Class states what a mutation changes.
type Class uint8

const (
	// Write changes keys: the content is a Txn.
	Write Class = 1
	// Compact drops the content of old revisions: the content is a Compaction.
	Compact Class = 2
	// Govern approves a change of the scope's government, signed with an anchor's
	// key: the content is a Decision.
	Govern Class = 3
	// Lease grants, revokes and keeps alive leases: the content is a LeaseRequest.
	Lease Class = 4
	// Name changes which keys name an object: the content is a Naming.
	Name Class = 5
	// Withdraw ends a motion on request of the author whose mutation opened it: the
	// content is a Withdrawal.
	Withdraw Class = 6
	// Act carries out a verb on what a key names: the content is an Action.
	Act Class = 7
	// Permit changes what users may do through the network's nodes: the content is an Access.
	Permit Class = 8
	// Rejoin brings in what anchors without a quorum decided provisionally: the content is a Rejoining.
	Rejoin Class = 9
	// Bring takes the next part of what a folded scope held: the content is a Bringing.
	Bring Class = 10
	// Carry brings what another scope decided about a name that moves between the two: the content is a Carrying.
	Carry Class = 11
)

// String is the class in lower case.
func (c Class) String() string {
	switch c {
	case Write:
		return "write"
	case Compact:
		return "compact"
	case Govern:
		return "govern"
	case Name:
		return "name"
	case Withdraw:
		return "withdraw"
	case Lease:
		return "lease"
	case Act:
		return "act"
	case Permit:
		return "permit"
	case Rejoin:
		return "rejoin"
	case Bring:
		return "bring"
	case Carry:
		return "carry"
	}
	return fmt.Sprintf("class(%d)", uint8(c))
}

// Mutation is one request to change a scope (P21). Its identity is the hash of
// its canonical encoding; a scope applies it at most once, and never after
// ValidUntil, so that sending it again is always safe.
type Mutation struct {
	_             struct{} `cbor:",toarray"`
	Scope         aweigh.ScopeID
	Class         Class
	Author        aweigh.Hash // votes.PublicKey.ID of the key that signs
	Content       []byte      // canonical encoding; Class gives its type
	Justification string      // why, in the author's words; kept in the lineage
	Caller        string      // for whom the author made it, as the author states; see MaxCaller
	Nonce         []byte      // 8 to 32 bytes that make this request unlike any other
	ValidUntil    aweigh.Instant
	Grants        [][]byte // canonical encodings of Grant, by which the author acts; none: by rights of its own
	// Patient is set if the mutation may only open a motion on keys. Then it may be valid for Limits.Pending. It stands
	// in a bundle of its own (P49).
	Patient bool
}

// MaxCaller bounds Mutation.Caller, in bytes. It is text without control characters, such as cert:cn:alice, and empty
// if the author made the request itself, or for a caller that it does not know. No node verifies it: it is worth what
// the author's word is.
const MaxCaller = 256

// checkCaller reports whether a mutation can have a caller.
func checkCaller(text string) error {
	switch control := func(r rune) bool { return r < ' ' || r == 0x7f }; {
	case len(text) > MaxCaller:
		return fmt.Errorf("a caller of %d bytes, at most %d are taken", len(text), MaxCaller)
	case strings.ContainsFunc(text, control):
		return errors.New("a caller with control characters")
	}
	return nil
}

// ID is the mutation's identity, given its canonical encoding.
func ID(encoded []byte) aweigh.Hash { return aweigh.Sum([]byte("aweigh/mutation/1"), encoded) }

// Txn is etcd's transaction: if every Compare holds, the operations of Success
// are done, otherwise those of Failure; all together or not at all.
type Txn struct {
	_                struct{} `cbor:",toarray"`
	Compare          []Compare
	Success, Failure []Op
	Reach            []Reach // bounds what the puts change; none: no bound. None in a transaction within another
}

// Reach is the keys from Key up to End, End excluded; the End of one byte 0 means "to the end of the key space". Where
// a transaction has some, every put must be of a key in one of them, and so must all other aliases of the object that
// it writes, when the transaction executes: otherwise it fails with ErrReach. A node sends the permissions of a client
// this way, so that an alias which comes to be meanwhile does not extend them.
type Reach struct {
	_        struct{} `cbor:",toarray"`
	Key, End []byte
}

// Target is what a Compare looks at.
type Target uint8

// The targets of a Compare; their numbers are etcd's plus one.
const (
	OnVersion Target = iota + 1
	OnCreate
	OnMod
	OnValue
	OnLease
)

// Relation is how a Compare compares.
type Relation uint8

// The relations of a Compare; their numbers are etcd's plus one.
const (
	Equal Relation = iota + 1
	Greater
	Less
	NotEqual
)

// Compare is one condition of a Txn. An absent key has version, revisions and
// lease 0, and fails every comparison of values. With End set it must hold for
// every key in [Key, End) (see Op for the forms of End).
type Compare struct {
	_        struct{} `cbor:",toarray"`
	Target   Target
	Relation Relation
	Key, End []byte
	Number   int64  // for every target but OnValue
	Value    []byte // for OnValue
}

// OpKind is what an Op does.
type OpKind uint8

// The kinds of an Op.
const (
	OpRange OpKind = iota + 1
	OpPut
	OpDelete
	OpTxn
	// OpMerge records that the value of the put after it was made from what Key holds too (P52).
	OpMerge
)

// Op is one operation of a Txn. A range of keys is [Key, End): an empty End
// means Key alone, and the single byte 0 means "to the end of the key space",
// as in etcd.
type Op struct {
	_           struct{} `cbor:",toarray"`
	Kind        OpKind
	Key, End    []byte
	Value       []byte // OpPut
	Lease       int64  // OpPut
	Prev        bool   // OpPut, OpDelete: return the content before
	IgnoreValue bool   // OpPut: keep the value, change the lease
	IgnoreLease bool   // OpPut: keep the lease, change the value
	Range       *Range // OpRange: how to read; nil means the newest content, ascending
	Txn         *Txn   // OpTxn
}

// Range holds the options for reading a range of keys: etcd's RangeRequest
// without the keys.
type Range struct {
	_                    struct{} `cbor:",toarray"`
	Revision             int64    // 0: the newest
	Limit                int64    // 0: no limit
	Sort                 SortBy
	Order                Order
	KeysOnly, CountOnly  bool
	MinMod, MaxMod       int64 // bounds on the mod revision, 0: none
	MinCreate, MaxCreate int64 // bounds on the create revision, 0: none
}

// Order is the direction of a range. The numbers are etcd's.
type Order uint8

// The directions of a range. Unordered means ascending, but, as in etcd, a
// limit then applies to the order of keys before the pairs that it left are
// sorted by anything else.
const (
	Unordered Order = iota
	Ascending
	Descending
)

// SortBy is what the pairs of a range are ordered by; ties by ascending key.
// The numbers are etcd's.
type SortBy uint8

// What the pairs of a range can be ordered by.
const (
	ByKey SortBy = iota
	ByVersion
	ByCreate
	ByMod
	ByValue
)

// Compaction drops the content of all revisions below Revision that a newer
// one has replaced. Lineage stays.
type Compaction struct {
	_        struct{} `cbor:",toarray"`
	Revision int64
}

// Withdrawal names the motion to withdraw.
type Withdrawal struct {
	_      struct{} `cbor:",toarray"`
	Motion votes.MotionID
}

// Encode is the canonical encoding.
func (m Mutation) Encode() []byte { return canon.Encode(m) }
