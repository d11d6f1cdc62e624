package main

import (
	"encoding/pem"
	"errors"
	"fmt"
	"strings"

	"github.com/aweigh/aweigh/internal/keyfile"
	"github.com/aweigh/aweigh/internal/show"
	"github.com/aweigh/aweigh/internal/token"
	"github.com/aweigh/aweigh/node"
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
	if _, err := scope.DecodeRangeProof(raw); err == nil {
		return is("a proof of what keys hold", "verify")
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
	return kindOfText(name, raw)
}

// kindOfText is kindOf for files of text.
func kindOfText(name string, raw []byte) string {
	text := strings.TrimSpace(string(raw))
	block, _ := pem.Decode(raw)
	_, public := votes.ParsePublicKey(text)
	private, err := votes.ParsePrivateKey(text)
	switch {
	case token.Is(raw):
		return fmt.Sprintf("%s is a token; see it with: aweigh token show %s", name, show.Word(name))
	case node.IsInvite(raw):
		return fmt.Sprintf("%s is an invite, which \"aweigh join\" takes", name)
	case public == nil:
		return fmt.Sprintf("%s is a public key, with which nothing can be signed", name)
	case keyfile.IsEncrypted(raw):
		return fmt.Sprintf("%s is a key file; see its public key with: aweigh voter show %s", name, show.Word(name))
	case err == nil:
		return fmt.Sprintf("%s is the private key of %s", name, private.Public())
	case block != nil && block.Type == "OPENSSH PRIVATE KEY":
		return fmt.Sprintf("%s is a private key of OpenSSH, with which the ssh-agent signs if it is of type ssh-ed25519: ssh-add %s, "+
			"and name it as ssh-agent:COMMENT", name, show.Word(name))
	case block != nil:
		return fmt.Sprintf("%s is a PEM file of type %s, of another program", name, show.Line(block.Type))
	}
	return ""
}

// otherKind is the error of a file of another kind than the one that a command reads; nil if its kind is not known.
// wants says what to name instead.
func otherKind(name string, raw []byte, wants string) error {
	if other := kindOf(name, raw); other != "" {
		return fmt.Errorf("%w: %s; %s", errOtherKind, other, wants)
	}
	return nil
}

// wantsKey says which files are keys.
const wantsKey = "name the file of a private key, which \"aweigh voter new\" makes"
