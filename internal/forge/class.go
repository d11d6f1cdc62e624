package forge

import "reflect"

// Class is the role of a part of a message for a forger.
type Class string

const (
	Part        Class = "part"        // it proves nothing by itself; what it holds may
	Plain       Class = "plain"       // a claim that no signature in it speaks for
	Order       Class = "order"       // a scope.Revocation: the receiver compares it with its own knowledge
	List        Class = "list"        // of parts
	Bytes       Class = "bytes"       // of a signature
	Signature   Class = "signature"   // with the name of its anchor
	Subject     Class = "subject"     // what signatures speak for
	Domain      Class = "domain"      // what they are bound to
	Header      Class = "header"      // that the subject names
	Certificate Class = "certificate" // of signatures that together meet a rule
	Ballot      Class = "ballot"      // a subject with one signature
	Fault       Class = "fault"       // two ballots that contradict each other
	Finality    Class = "finality"    // a header with the certificate for it, or for one above it
	Evidence    Class = "evidence"    // that a block carries

	EncodedBundle  Class = "encoded bundle"
	EncodedBlock   Class = "encoded block"
	EncodedBallot  Class = "encoded motion ballot"
	EncodedMeeting Class = "encoded message of a meeting"
)

// classes has the class of each type that may be in a message. Strings of bytes are named by their struct and
// field.
var classes = map[string]Class{
	"machine.Proposal": Part, "machine.Offer": Part, "machine.OfferedVote": Part, "machine.Want": Plain, "machine.Ask": Plain,
	"machine.Answer": Part, "machine.CatchUp": Plain, "machine.Blocks": Part, "machine.Announce": Part, "machine.Cast": Part,
	"machine.ReconcileMsg": Part, "machine.RawBundle": EncodedBundle, "machine.RawBlock": EncodedBlock,
	"machine.Proposal.Signature": Bytes, "machine.Blocks.Blocks": EncodedBlock, "machine.Cast.Ballots": EncodedBallot,
	"machine.ReconcileMsg.Message": EncodedMeeting, "machine.ReconcileStep": Plain,

	"quorum.Certificate": Certificate, "quorum.Signature": Signature, "quorum.Signature.Bytes": Bytes,
	"quorum.Subject": Subject, "quorum.Kind": Plain,

	"votes.Ballot": Ballot, "votes.Ballot.Signature": Bytes, "votes.Domain": Domain, "votes.Equivocation": Fault,
	"votes.MotionBallot": Part, "votes.MotionBallot.Signature": Bytes, "votes.MotionVote": Part,
	"votes.Choice": Plain, "votes.Algorithm": Plain,
	"votes.PublicKey": Plain,

	"scope.Finality": Finality, "scope.Header": Header, "scope.Evidence": Evidence, "scope.Evidence.Ballots": EncodedBallot,
	"scope.Attended": Part, "scope.Revocation": Order,
	"scope.Bundle": Part, "scope.Bundle.Signature": Bytes, "scope.Bundle.Mutations": Plain,
	"scope.Handover": Part, "scope.Terms": Plain, "scope.Decision": Part, "scope.Decision.Consent": Bytes,

	"forge.Block": Part, "forge.Block.Bundles": EncodedBundle,
	"forge.meeting": Part, "forge.meeting.Items": EncodedBallot,
	"forge.hello": Plain, "forge.split": Plain, "forge.list": Plain,

	"aweigh.Hash": Plain, "aweigh.View": Plain, "aweigh.Height": Plain, "aweigh.Epoch": Plain, "aweigh.Instant": Plain,
	"bool": Plain, "string": Plain, "uint16": Plain, "uint64": Plain, "int64": Plain,
}

// whole are the classes of what holds parts, and is looked into.
var whole = map[Class]bool{
	Part: true, Signature: true, Certificate: true, Ballot: true, Fault: true, Finality: true, Evidence: true,
}

// proves reports whether a place of a class is one for an operator.
func (c Class) proves() bool { return c != Part && c != Plain && c != Order && c != "" }

// classOf is the class of a value that stands in a field of a struct, if any; "" if it has none.
func classOf(t reflect.Type, field string) Class {
	for t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Slice { // encodings
		t = t.Elem()
	}
	if t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8 && t.Name() == "" {
		return classes[field]
	}
	return classes[t.String()]
}
