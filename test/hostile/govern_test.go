package hostile

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/internal/testwait"
	"github.com/aweigh/aweigh/internal/vary"
	"github.com/aweigh/aweigh/internal/wysiwys"
	"github.com/aweigh/aweigh/node"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/p2p"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
)

// TestNoProposerHidesFields: an anchor proposes a policy that changes what it says, and
// much besides. An anchor that is asked to approve sees every change, in text and in JSON. A
// policy that dates blocks a day ahead is refused by every node.
func TestNoProposerHidesFields(t *testing.T) {
	testshort.Skip(t)
	x := newNetwork(t, 4)
	liar := x.forge(t).keys[3]
	inForce := x.policy
	p := inForce
	p.Limits.TTL += time.Second // what the liar talks about
	p.Limits.KeyBytes, p.Limits.ValueBytes, p.Limits.MutationBytes = 2000, 1<<20, 3<<19
	p.Limits.TxnOps, p.Limits.JustificationBytes, p.Limits.BlockMutations = 64, 512, 5000
	p.Limits.ValidFor, p.Limits.Drift = 5*time.Minute, 499*time.Millisecond
	grant := vary.LongAuthor()
	p.Authors = append(slices.Clone(p.Authors), grant)
	slices.SortFunc(p.Authors, func(a, b scope.Author) int { return strings.Compare(a.Name, b.Name) })
	x.propose(t, liar, &p)
	var of *node.Motion
	testwait.Until(t, "the motion is open at another anchor", func() bool {
		all, _, err := x.node(0).Motions(false)
		if err != nil || len(all) == 0 {
			return false
		}
		of = &all[0]
		return true
	})
	shown, err := wysiwys.Motion(of.Opening, &inForce)
	if err != nil {
		t.Fatalf("an honest anchor cannot be shown the motion: %v", err)
	}
	text := shown.Text()
	raw, err := shown.Full.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	for field, values := range map[string][2]string{
		"ttl": {"5s", "6s"}, "key_bytes": {"1KiB", "2000"}, "value_bytes": {"1536KiB", "1MiB"}, "mutation_bytes": {"2MiB", "1536KiB"},
		"txn_ops": {"128", "64"}, "justification_bytes": {"1KiB", "512"}, "block_mutations": {"10000", "5000"}, "valid_for": {"10m0s", "5m0s"},
		"drift": {"500ms", "499ms"},
	} {
		if want := "limits." + field + ": " + values[0] + " -> " + values[1]; !strings.Contains(text, want) {
			t.Errorf("%q is not in the text:\n%s", want, text)
		}
		if !strings.Contains(string(raw), values[1]) {
			t.Errorf("the change of %s to %s is not in the JSON", field, values[1])
		}
	}

	for _, prefix := range grant.Prefixes {
		if !strings.Contains(text, string(prefix)) || !strings.Contains(string(raw), string(prefix)) {
			t.Errorf("the right to change what is below %.5s… is not shown:\n%s", prefix, text)
		}
	}

	far := inForce
	far.Limits.Drift = 24 * time.Hour
	refused := x.refused()
	x.propose(t, liar, &far)
	testwait.Until(t, "each node refuses it", func() bool { return x.refused() >= refused+uint64(len(x.daemons)) })
	x.commits(t)
	all, _, err := x.node(0).Motions(false)
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != 1 {
		t.Errorf("%d motions are open, where one is: a policy may date blocks a day ahead", len(all))
	}
	x.commits(t)
}

// refused counts frames that nodes found to be no honest ones.
func (x *net4) refused() uint64 { return x.stats(func(s p2p.Stats) uint64 { return s.Blamed }) }

// propose sends a decision to all nodes in an anchor's name, past its own node and past
// all that would check it there.
func (x *net4) propose(t testing.TB, key votes.PrivateKey, p *scope.Policy) {
	t.Helper()
	m := scope.Mutation{
		Scope: x.Genesis.Hash(), Author: key.Public().ID(), Class: scope.Govern, Nonce: fmt.Appendf(nil, "%016d", x.written.Add(1)),
		Content:    canon.Encode(scope.Decision{Kind: scope.SetPolicy, Policy: p}),
		ValidUntil: aweigh.InstantOf(time.Now().Add(time.Minute)),
	}
	author, id := m.Author, scope.ID(m.Encode())
	b := scope.Bundle{Author: key.Public(), Mutations: [][]byte{m.Encode()}}
	sum := aweigh.Sum([]byte("aweigh/bundle/2"), author[:], make([]byte, 8), id[:]) // the bundle's identity, without a reserve
	b.Signature = key.Sign(votes.ContextBundle, sum[:])
	frame := Frame(machine.Frame(machine.RawBundle(canon.Encode(b))))
	for i := range x.daemons {
		a, to := x.attacker(t, i)
		s, err := a.Open(t.Context(), to, "frames")
		if err == nil {
			err = Write(s, frame, 5*time.Second)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
