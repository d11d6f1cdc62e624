package votes_test

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/votes"
)

// nothing is an empty store.
type nothing struct{}

func (nothing) Get([]byte) ([]byte, bool, error)                         { return nil, false, nil }
func (nothing) Scan(_, _ []byte, _ bool, _ func(_, _ []byte) bool) error { return nil }

func Example() {
	key, err := votes.KeyFromSeed(votes.Ed25519, bytes.Repeat([]byte{7}, 32))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(key)

	// A scope of one anchor, and the guard that signs for it.
	domain := votes.Domain{Network: aweigh.Sum([]byte("net")), Scope: aweigh.Sum([]byte("scope"))}
	weights, _ := quorum.Equal(key.Public().ID())
	ring, err := votes.NewKeyring(domain, quorum.DefaultRules(quorum.BFT), weights, key.Public())
	if err != nil {
		fmt.Println(err)
		return
	}
	store := kv.NewOverlay(nothing{})
	guard, err := votes.OpenGuard(key, domain, store)
	if err != nil {
		fmt.Println(err)
		return
	}

	ballot, ops, err := guard.Sign(quorum.Subject{Kind: quorum.Finalize, View: 1, Block: aweigh.Sum([]byte("block"))})
	fmt.Println(len(ops), "write before the ballot may leave;", err)
	store.Apply(ops...)

	_, err = ring.Check(ballot)
	fmt.Println("check:", err)
	_, _, err = guard.Sign(quorum.Subject{Kind: quorum.Nullify, View: 1})
	fmt.Println("conflict:", errors.Is(err, votes.ErrConflict))
	// Output:
	// private key of ed25519:6kpsY-KcUgq-9VB7Ey7F-ZVHdq6-vnuSQh7qaRRG0iw
	// 1 write before the ballot may leave; <nil>
	// check: <nil>
	// conflict: true
}

func ExampleSignMotionBallot() {
	key, err := votes.KeyFromSeed(votes.Ed25519, bytes.Repeat([]byte{7}, 32))
	if err != nil {
		fmt.Println(err)
		return
	}
	network, scope := aweigh.Sum([]byte("net")), aweigh.Sum([]byte("scope"))

	// On a machine without a network.
	ballot, err := votes.SignMotionBallot(key.Signer(), votes.MotionVote{
		Network: network, Scope: scope, Motion: aweigh.Sum([]byte("mutation")), Choice: votes.Approve,
	}, "tested on site")
	if err != nil {
		fmt.Println(err)
		return
	}
	stick := votes.AppendMotionBallots(nil, ballot)

	// Days later, where there is one.
	voters, _ := votes.NewKeySet(key.Public())
	r := votes.NewMotionBallotReader(bytes.NewReader(stick), votes.BallotFileLimits{})
	for {
		b, err := r.Next()
		if err != nil {
			fmt.Println(err)
			return
		}
		_, err = votes.CheckMotionBallot(b, network, scope, voters, nil)
		fmt.Printf("%s, %q: %v\n", b, b.Comment, err)
	}
	// Output:
	// approve of motion d3336a33 by 4d3a55ce, "tested on site": <nil>
	// EOF
}
