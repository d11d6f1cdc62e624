package lineage

import (
	"fmt"
	"slices"
)

// Class states what an entry records. The numbers stand in encodings and never
// change their meaning.
type Class uint8

const (
	Insert     Class = iota + 1 // an object came to be
	Update                      // its content changed
	Delete                      // its last alias went; history stays
	Claim                       // the author asserted ownership or authority
	AliasBind                   // a further name for an object
	AliasMove                   // a name took another's place
	Policy                      // the scope's policy changed
	Membership                  // anchors joined or left
	Delegate                    // a prefix went to a child scope
	Split                       // the scope became several
	Merge                       // several scopes became one
	Reconcile                   // ballots that arrived late were recorded
	Compact                     // old content was dropped
	Failed                      // a mutation was ordered but its precondition failed
	Opened                      // a mutation waits for approval: it opened a motion
	Voted                       // a ballot on a motion was counted
	Closed                      // a motion was carried or not, for the reason given

	Access Class = 31 // users or roles of the network changed

	AliasUnbind Class = 32 // a name of an object went; it has others
	AliasFollow Class = 33 // a further name of an object shows the object's new content
	HandedOver  Class = 34 // an object went to a child scope, under this name
	TakenOver   Class = 35 // an object came from the parent scope, under this name
	Revoked     Class = 36 // a child scope shall be governed by others
	Yielded     Class = 37 // the parent scope's order that others shall govern was obeyed
	Rejoined    Class = 38 // an island of the scope is on record: anchors without a quorum decided provisionally
	SetAside    Class = 39 // what an island decided did not stand, for the reason given
	Folded      Class = 40 // a child scope came home: its keys are this scope's again
	CameHome    Class = 41 // an object came back from a child scope, under this name
	Sent        Class = 42 // a name is on its way to another scope, and does not change until that decides
	Received    Class = 43 // an object came from another scope, under this name
	Declined    Class = 44 // an object was not taken from another scope, for the reason given
	Left        Class = 45 // an object went to the scope that received it: this name is gone
	Kept        Class = 46 // a name that was on its way stays, for the reason given
)

var classNames = [...]string{
	Insert: "insert", Update: "update", Delete: "delete", Claim: "claim",
	AliasBind: "alias-bind", AliasMove: "alias-move", Policy: "policy",
	Membership: "membership", Delegate: "delegate", Split: "split", Merge: "merge",
	Reconcile: "reconcile", Compact: "compact", Failed: "failed",
	Opened: "opened", Voted: "voted", Closed: "closed", Access: "access",
	AliasUnbind: "alias-unbind", AliasFollow: "alias-follow", HandedOver: "handed-over", TakenOver: "taken-over", Revoked: "revoked", Yielded: "yielded",
	Rejoined: "rejoined", SetAside: "set-aside", Folded: "folded", CameHome: "came-home",
	Sent: "sent", Received: "received", Declined: "declined", Left: "left", Kept: "kept",
}

// Valid reports whether c is one of the classes.
func (c Class) Valid() bool { return int(c) < len(classNames) && classNames[c] != "" }

// Shows reports whether an entry of the class records new content under its key:
// Posterior is the digest of it.
func (c Class) Shows() bool {
	switch c {
	case Insert, Update, AliasBind, AliasMove, AliasFollow, TakenOver, CameHome, Received:
		return true
	}
	return false
}

// Clears reports whether after an entry of the class its key names nothing any
// more: Prior is the digest of the object that it named.
func (c Class) Clears() bool { return c == Delete || c == AliasUnbind || c == HandedOver || c == Left }

// ParseClass reads what String writes of a valid class.
func ParseClass(text string) (Class, bool) {
	i := slices.Index(classNames[:], text)
	return Class(max(i, 0)), i >= 0 && text != ""
}

// String is the class in lower case, words joined by hyphens.
func (c Class) String() string {
	if !c.Valid() {
		return fmt.Sprintf("class(%d)", uint8(c))
	}
	return classNames[c]
}
