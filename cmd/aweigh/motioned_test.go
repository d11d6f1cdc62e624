package main

import (
	"bytes"
	"encoding/json"
	"os"
	"slices"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/internal/must"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/store"
	"github.com/aweigh/aweigh/votes"
)

// motioned writes the files for tests of offline commands into the current folder.
// Its argument is the output of "aweigh voter new -o json" for the approver alice; a
// second one, "past", makes motions whose deadline has passed. The files:
//
//	network        identity of the network
//	m.motion       a motion below /secrets/, open
//	carried.proof  of /secrets/db, which a motion carried
//	foreign.motion of another network
//	node1.key, stranger.key  in plain text
func motioned() {
	var alice struct{ Key votes.PublicKey }
	raw, err := os.ReadFile(os.Args[1])
	must.OK(err, "reading alice's key")
	must.OK(json.Unmarshal(raw, &alice), "reading alice's key")
	age := time.Minute
	if len(os.Args) > 2 {
		age = 48 * time.Hour
	}
	w := newMotioned("test", alice.Key, age)
	first := w.open("/secrets/db", "user: db\npassword: old\nport: 5432")
	w.block(nil, w.ballots(first)...)
	id := w.open("/secrets/db", "user: db\npassword: new\nport: 5432")
	w.block(nil)
	w.save("network", []byte(w.g.Hash().String()))
	w.save("m.motion", w.motion(id).Encode())
	w.save("carried.proof", w.carried(first, "/secrets/db").Encode())
	w.save("node1.key", []byte(w.keys[0].Encode()))
	w.save("stranger.key", []byte(keyOfSeed(77).Encode()))
	o := newMotioned("other", alice.Key, age)
	id = o.open("/secrets/db", "x")
	o.block(nil)
	o.save("foreign.motion", o.motion(id).Encode())
}

// motionedWorld is one scope of two anchors.
type motionedWorld struct {
	g      scope.Genesis
	keys   []votes.PrivateKey
	store  *store.Mem
	state  *scope.State
	blocks []*scope.Block
	nonce  byte
}

func keyOfSeed(seed byte) votes.PrivateKey {
	k, err := votes.KeyFromSeed(votes.Ed25519, bytes.Repeat([]byte{seed}, 32))
	must.OK(err, "making a key")
	return k
}

func newMotioned(name string, alice votes.PublicKey, age time.Duration) *motionedWorld {
	w := &motionedWorld{keys: []votes.PrivateKey{keyOfSeed(1), keyOfSeed(2)}, store: store.NewMem()}
	slices.SortFunc(w.keys, func(a, b votes.PrivateKey) int {
		x, y := a.Public().ID(), b.Public().ID()
		return bytes.Compare(x[:], y[:])
	})
	w.g = scope.Genesis{Format: scope.Format, Name: name, Time: aweigh.InstantOf(time.Now().Add(-age)), Policy: scope.OpenPolicy(quorum.BFT)}
	w.g.Policy.Approvals = []scope.Approval{{Matter: scope.Changes, Prefix: []byte("/secrets/"), Num: 1, Den: 2, Anchors: 1, Window: 24 * time.Hour,
		Approvers: []scope.Approver{{Name: "alice", Key: alice, Share: 300_000}}}}
	for i, k := range w.keys {
		w.g.Anchors = append(w.g.Anchors, scope.Anchor{Name: []string{"node1", "node2"}[i], Key: k.Public(), Score: 500_000})
	}
	ops, err := scope.Init(w.g)
	must.OK(err, "making a scope")
	w.commit(ops)
	return w
}

func (w *motionedWorld) commit(ops []kv.Op) {
	must.OK(w.store.Commit(ops, false), "writing")
	var err error
	w.state, err = scope.Open(w.store, w.g.Hash())
	must.OK(err, "opening the state")
}

func (w *motionedWorld) block(bundles []*scope.CheckedBundle, ballots ...votes.MotionBallot) {
	head := w.state.Head()
	h, _, err := w.state.Claim(scope.Header{View: head.View + 1, Time: w.g.Time.Add(time.Duration(len(w.blocks)+1) * time.Second)})
	must.OK(err, "claiming")
	slices.SortFunc(ballots, func(a, b votes.MotionBallot) int { return bytes.Compare(a.Voter[:], b.Voter[:]) })
	var raw [][]byte
	for i := range ballots {
		raw = append(raw, ballots[i].Encode())
	}
	b := scope.NewBlock(h, bundles, scope.Evidence{Ballots: raw})
	res, err := w.state.Execute(b)
	must.OK(err, "executing")
	w.commit(res.Ops)
	w.blocks = append(w.blocks, b)
}

// open opens a motion that puts a key.
func (w *motionedWorld) open(key, value string) votes.MotionID {
	w.nonce++
	t := scope.Txn{Success: []scope.Op{{Kind: scope.OpPut, Key: []byte(key), Value: []byte(value)}}}
	b, err := scope.Sign(keyOfSeed(50), w.g.Policy.Limits, scope.Mutation{
		Scope: w.g.Hash(), Class: scope.Write, Content: canon.Encode(t), Justification: "rotate the password",
		Nonce: bytes.Repeat([]byte{w.nonce}, 8), ValidUntil: w.g.Time.Add(time.Minute),
	})
	must.OK(err, "signing")
	w.block([]*scope.CheckedBundle{b})
	return b.Mutations()[0].ID
}

// ballots are the anchors' approvals.
func (w *motionedWorld) ballots(id votes.MotionID) (all []votes.MotionBallot) {
	for _, k := range w.keys {
		b, err := votes.SignMotionBallot(k.Signer(), votes.MotionVote{Network: w.g.Hash(), Scope: w.g.Hash(), Motion: id, Choice: votes.Approve}, "looks right")
		must.OK(err, "signing")
		all = append(all, b)
	}
	return all
}

// final is the finality of a block, by the newest.
func (w *motionedWorld) final(at aweigh.Height) scope.Finality {
	k, err := w.g.Keyring()
	must.OK(err, "making a keyring")
	f := scope.Finality{Header: w.blocks[at-1].Header}
	for _, b := range w.blocks[at:] {
		f.Descendants = append(f.Descendants, b.Header)
	}
	tip := w.blocks[len(w.blocks)-1].Header
	f.Certificate.Subject = quorum.Subject{Kind: quorum.Finalize, View: tip.View, Block: tip.Hash()}
	for _, key := range w.keys {
		guard, err := votes.OpenGuard(key, k.Domain(), store.NewMem())
		must.OK(err, "opening a guard")
		b, _, err := guard.Sign(f.Certificate.Subject)
		must.OK(err, "signing")
		f.Certificate.Signatures = append(f.Certificate.Signatures, b.Vote().Signature)
	}
	return f
}

func (w *motionedWorld) ancestry() scope.Ancestry {
	return scope.Ancestry{Genesis: w.g, Head: w.final(aweigh.Height(len(w.blocks)))}
}

func (w *motionedWorld) minutes(id votes.MotionID) *scope.Minutes {
	m, err := w.state.Minutes(id)
	must.OK(err, "reading a motion")
	must.Hold(m != nil, "there is no motion %s", id)
	return m
}

func (w *motionedWorld) motion(id votes.MotionID) *scope.MotionProof {
	m := w.minutes(id)
	p, err := scope.NewMotionProof(w.ancestry(), w.state, &m.Motion, w.blocks[m.Motion.Height-1], w.final(m.Motion.Height))
	must.OK(err, "proving a motion")
	return p
}

func (w *motionedWorld) carried(id votes.MotionID, key string) *scope.KeyProof {
	m := w.minutes(id)
	p, err := scope.NewKeyProof(w.ancestry(), w.state, []byte(key), w.blocks[m.Motion.Height-1], w.final(m.Motion.Height), m)
	must.OK(err, "proving a key")
	return p
}

func (w *motionedWorld) save(name string, data []byte) {
	must.OK(os.WriteFile(name, data, 0o600), "writing "+name)
}
