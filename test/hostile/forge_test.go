package hostile

import (
	"crypto/rand"
	"encoding/binary"
	"testing"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
)

// forge makes the frames of attacks.
type forge struct {
	t      testing.TB
	x      *net4
	domain votes.Domain
	keys   []votes.PrivateKey // of all four anchors
	author votes.PrivateKey   // unknown to the network
	serial uint64
}

func (x *net4) forge(t testing.TB) *forge {
	t.Helper()
	k, err := x.Genesis.Keyring()
	if err != nil {
		t.Fatal(err)
	}
	f := &forge{t: t, x: x, domain: k.Domain(), author: newKey(t)}
	for _, a := range x.Nodes {
		_, anchor, err := a.Home.Keys()
		if err != nil {
			t.Fatal(err)
		}
		f.keys = append(f.keys, *anchor)
	}
	return f
}

func newKey(t testing.TB) votes.PrivateKey {
	t.Helper()
	k, err := votes.GenerateKey(votes.Ed25519, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// bundle is a valid bundle of one write, unlike all before, by an unknown
// author.
func (f *forge) bundle(value []byte) machine.RawBundle {
	f.t.Helper()
	f.serial++
	m := scope.Mutation{
		Scope: f.x.Genesis.Hash(), Class: scope.Write, Nonce: binary.BigEndian.AppendUint64(nil, f.serial),
		Content:    canon.Encode(put("/flood", string(value))),
		ValidUntil: aweigh.InstantOf(time.Now().Add(30 * time.Second)),
	}
	b, err := scope.Sign(f.author, f.x.Genesis.Policy.Limits, m)
	if err != nil {
		f.t.Fatal(err)
	}
	return b.Raw()
}

// ballot is one of anchor i's.
func (f *forge) ballot(i int, d votes.Domain, s quorum.Subject) votes.Ballot {
	b := votes.Ballot{Format: votes.Format, Domain: d, Subject: s, Anchor: f.keys[i].Public().ID()}
	b.Signature = f.keys[i].Sign(votes.ContextBallot, b.SigningBytes())
	return b
}

// announcement is one of the newest final block of node 0, with signatures of
// the anchors named.
func (f *forge) announcement(anchors ...int) machine.Announce {
	f.t.Helper()
	h := f.x.node(0).Root().History()
	block, err := h.Block(f.x.node(0).Root().Status().Head.Height)
	if err != nil {
		f.t.Fatal(err)
	}
	a := machine.Announce{Header: block.Header}
	a.Certificate.Subject = quorum.Subject{Kind: quorum.Finalize, View: block.Header.View, Block: block.Hash()}
	for _, i := range anchors {
		b := f.ballot(i, f.domain, a.Certificate.Subject)
		a.Certificate.Signatures = append(a.Certificate.Signatures, quorum.Signature{Anchor: b.Anchor, Bytes: b.Signature})
	}
	return a
}

// sorted is anchors in the order that certificates keep.
func (f *forge) sorted(a machine.Announce) machine.Announce {
	s := a.Certificate.Signatures
	for i := range s {
		for j := i; j > 0 && string(s[j].Anchor[:]) < string(s[j-1].Anchor[:]); j-- {
			s[j], s[j-1] = s[j-1], s[j]
		}
	}
	return a
}

// spoiled is a copy with its last byte changed: of a signature, if one stands there.
func spoiled(frame []byte) []byte {
	frame = append([]byte(nil), frame...)
	frame[len(frame)-1] ^= 1
	return frame
}
