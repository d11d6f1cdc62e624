package main

import (
	"errors"
	"fmt"

	"github.com/aweigh/aweigh/internal/show"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
)

// errOtherKind is wrapped where a file is of another kind than the one that a command reads.
var errOtherKind = errors.New("another kind of file")

// kindOf reports what a file holds, and which command reads it, for a command that reads another kind; "" if it is none
// that a command writes.
func kindOf(name string, raw []byte) string {
	is := func(what, see string) string {
		return fmt.Sprintf("%s is %s; see it with: aweigh %s %s", name, what, see, show.Word(name))
	}
	if _, err := scope.DecodeKeyProof(raw); err == nil {
		return is("a proof of a key", "verify")
	}
	if _, err := scope.DecodeFaultProof(raw); err == nil {
		return is("a proof of a fault", "verify")
	}
	if _, err := scope.DecodeMotionProof(raw); err == nil {
		return is("the file of a motion", "ballot inspect")
	}
	if _, err := votes.DecodeMotionBallot(raw); err == nil {
		return is("a ballot", "ballot show")
	}
	if g, err := scope.DecodeGenesis(raw); err == nil {
		return fmt.Sprintf("%s is the genesis of network %s", name, g.Hash())
	}
	return ""
}
