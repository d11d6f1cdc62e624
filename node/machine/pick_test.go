package machine

import (
	"fmt"
	"testing"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
)

// reserving is a bundle of one transaction, unlike others by its number.
func (n *lone) reserving(by votes.PrivateKey, units int64, number int, t scope.Txn) *scope.CheckedBundle {
	n.t.Helper()
	b, err := scope.SignReserving(units, by, n.chain.policy.Limits, scope.Mutation{
		Scope: n.id, Class: scope.Write, Content: canon.Encode(t), Nonce: fmt.Appendf(nil, "%08d", number), ValidUntil: n.now.Add(time.Minute),
	})
	if err != nil {
		n.t.Fatal(err)
	}
	return b
}

// TestAuthorsHaveTurnsInABlock: what does not fit into a block waits. Authors have turns, this node's clients
// first, and non-members get a part of a block, which they neither exceed nor lose while others wait.
func TestAuthorsHaveTurnsInABlock(t *testing.T) {
	n := newLone(t, scope.OpenPolicy(quorum.BFT), true)
	lim := n.chain.policy.Limits
	unit := lim.BlockCost / 40
	admit := func(number int, by votes.PrivateKey, from Peer, units int64) {
		t.Helper()
		if err := n.admit(n.reserving(by, units-100, number, putTxn(fmt.Sprint("/k", number), "v")), from); err != nil {
			t.Fatal(err)
		}
	}
	number := 0
	for range 60 { // two non-members were first, and ask for more than three blocks hold
		for s := range 2 {
			number++
			admit(number, loneKey(t, byte(10+s)), "stranger", unit)
		}
	}
	for range 100 {
		number++
		admit(number, n.author, "", unit)
	}
	for range 100 {
		number++
		admit(number, loneKey(t, 1), "anchor", unit) // signed with the anchor's own key
	}
	now := n.now
	got, cost := make(map[aweigh.Hash]int), int64(0)
	picked := n.pick(nil, now)
	for _, b := range picked {
		got[b.Mutations()[0].Author]++
		cost += b.Cost()
	}
	author := func(k votes.PrivateKey) int { return got[k.Public().ID()] }
	if cost > lim.BlockCost || cost < lim.BlockCost*9/10 {
		t.Errorf("a block of %d units where %d are taken", cost, lim.BlockCost)
	}
	if a, b := author(n.author), author(loneKey(t, 1)); a < 14 || b < 14 || a-b > 2 || b > a {
		t.Errorf("%d of this node's clients and %d of an anchor", a, b)
	}
	if a, b := author(loneKey(t, 10)), author(loneKey(t, 11)); a != 5 || b != 5 {
		t.Errorf("%d and %d of non-members", a, b)
	}
	if picked[0].Author().ID() != n.author.Public().ID() {
		t.Error("this node's clients are not first")
	}

	// One that needs a whole block gets one, whoever waits beside it.
	n = newLone(t, scope.OpenPolicy(quorum.BFT), true)
	admit(1, loneKey(t, 10), "stranger", unit)
	admit(2, n.author, "", lim.BlockCost)
	admit(3, n.author, "", unit)
	if picked := n.pick(nil, n.now); len(picked) != 1 || picked[0].Author().ID() != n.author.Public().ID() {
		t.Errorf("%d picked", len(picked))
	}
}

// TestDearBundlesHaveTheirTurn: a bundle that needs a whole block gets one though small ones of others always wait,
// those of this node's clients among them, and non-members' or none beside them; and no author has more than a turn.
func TestDearBundlesHaveTheirTurn(t *testing.T) {
	for _, nonMembers := range []bool{false, true} {
		n := newLone(t, scope.OpenPolicy(quorum.BFT), true)
		lim, number := n.chain.policy.Limits, 0
		add := func(by votes.PrivateKey, from Peer, units int64) {
			t.Helper()
			number++
			if err := n.admit(n.reserving(by, units-100, number, putTxn(fmt.Sprint("/k", number), "v")), from); err != nil {
				t.Fatal(err)
			}
		}
		anchor, other, nonMember := loneKey(t, 1), loneKey(t, 2), loneKey(t, 10)
		n.pool.outcomes.anchors = authors{other.Public().ID()} // as the node of an anchor
		for range 2 {
			add(anchor, "anchor", lim.BlockCost)
			add(other, "other", lim.BlockCost)
		}
		whole := make(map[aweigh.Hash]int)
		mine := 0
		for block := range 6 {
			for range 3 {
				add(n.author, "", lim.BlockCost/8)
				if nonMembers {
					add(nonMember, "stranger", lim.BlockCost/8)
				}
			}
			for _, b := range n.pick(nil, n.now) {
				if b.Cost() > lim.BlockCost*3/4 {
					whole[b.Author().ID()]++
				} else if b.Author().ID() == n.author.Public().ID() {
					mine++
				}
				n.pool.remove(n.pool.entries[b.ID()])
			}
			if a, o := whole[anchor.Public().ID()], whole[other.Public().ID()]; a > block/3+1 || o > block/3+1 {
				t.Errorf("non-members %v: after %d blocks, %d and %d were for one author alone", nonMembers, block+1, a, o)
			}
		}
		if whole[anchor.Public().ID()] != 2 || whole[other.Public().ID()] != 2 || mine < 8 {
			t.Errorf("non-members %v: whole blocks for %v, and %d bundles of this node's clients", nonMembers, whole, mine)
		}
	}
}

// TestDearMutationsOfNonMembersFailNobody: non-members send transactions that cost far more than they reserve, and far
// more than a block takes together. All honest ones are applied at once, those that look at many keys, too.
func TestDearMutationsOfNonMembersFailNobody(t *testing.T) {
	n := newLone(t, scope.OpenPolicy(quorum.BFT), true)
	for i := range 200 {
		n.step(Submit{Bundle: n.reserving(n.author, 0, 1_000_000+i, putTxn(fmt.Sprintf("/k/%03d", i), "v"))})
	}
	look := scope.Op{Kind: scope.OpRange, Key: []byte("/k/"), End: []byte("/k0")}
	var dear scope.Txn
	for range 100 { // 20,000 keys
		dear.Success = append(dear.Success, look)
	}
	dear.Success = append(dear.Success, scope.Op{Kind: scope.OpPut, Key: []byte("/stranger"), Value: []byte("v")})
	waits := make(map[aweigh.Hash]aweigh.Instant)
	done, exceeded, number := 0, 0, 0
	heed := func(fx Effects) {
		for _, r := range fx.Reply {
			asked, ours := waits[r.Mutation]
			if !ours {
				continue
			}
			if r.Outcome == nil || r.Outcome.Code != scope.Applied {
				t.Fatalf("%+v: %+v", r, r.Outcome)
			}
			if late := n.now.Sub(asked); late > time.Second {
				t.Errorf("decided after %v", late)
			}
			delete(waits, r.Mutation)
			done++
		}
		for _, note := range fx.Notes {
			if f, ok := note.(Finalized); ok {
				exceeded += f.Mutations
			}
		}
	}
	const rounds = 20
	for range rounds {
		var events []Event
		for range 6 {
			number++
			units := int64(number%2) * n.chain.policy.Limits.BlockCost / 8
			b := n.reserving(loneKey(t, byte(10+number%7)), units, number, dear)
			events = append(events, Arrived{From: "stranger", Message: BundleIn{Bundle: b}})
		}
		number++
		cas := scope.Txn{
			Compare: []scope.Compare{{Target: scope.OnVersion, Relation: scope.Equal, Key: fmt.Appendf(nil, "/own/%d", number)}},
			Success: []scope.Op{look, {Kind: scope.OpPut, Key: fmt.Appendf(nil, "/own/%d", number), Value: []byte("v")}},
		}
		b := n.reserving(n.author, 1000, number, cas)
		waits[b.Mutations()[0].ID] = n.now
		heed(n.step(append(events, Submit{Bundle: b})...))
	}
	for range 20 {
		heed(n.step())
	}
	if done != rounds || len(waits) > 0 {
		t.Errorf("%d of %d were applied", done, rounds)
	}
	t.Logf("%d mutations in blocks", exceeded)
}

// TestHoldersOfGrantsShareATurn: an author that makes many keys, and grants them its rights, gets the turns of one.
func TestHoldersOfGrantsShareATurn(t *testing.T) {
	n := newLone(t, scope.OpenPolicy(quorum.BFT), true)
	unit := n.chain.policy.Limits.BlockCost / 40
	number := 0
	admit := func(by votes.PrivateKey, grants ...[]byte) {
		t.Helper()
		number++
		b, err := scope.SignReserving(unit-1000, by, n.chain.policy.Limits, scope.Mutation{
			Scope: n.id, Class: scope.Write, Content: canon.Encode(putTxn(fmt.Sprint("/k", number), "v")), Grants: grants,
			Nonce: fmt.Appendf(nil, "%08d", number), ValidUntil: n.now.Add(time.Minute),
		})
		if err == nil {
			err = n.admit(b, "stranger")
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	many, one := loneKey(t, 10), loneKey(t, 11)
	for i := range 60 {
		holder := loneKey(t, byte(100+i))
		g, err := scope.SignGrant(many.Signer(), scope.Grant{Scope: n.id, To: holder.Public(), Name: "ci", NotAfter: n.now.Add(time.Hour)})
		if err != nil {
			t.Fatal(err)
		}
		admit(holder, g.Encode())
		admit(one)
	}
	got := make(map[aweigh.Hash]int)
	for _, b := range n.pick(nil, n.now) {
		got[b.Mutations()[0].Principal()]++
	}
	if a, b := got[many.Public().ID()], got[one.Public().ID()]; a == 0 || b < a-1 || a < b-1 {
		t.Errorf("the author with 60 holders has %d bundles in a block, and the other %d", a, b)
	}
}
