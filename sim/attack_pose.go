package sim

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aweigh/aweigh/action"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/internal/must"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/sim/scenario"
	"github.com/aweigh/aweigh/votes"
)

// pose signs changes that only others may make, and states that root or another caller asked for them. It sends them to
// all nodes, and members that lead put them into their blocks. What it signs is genuine: the rights of its keys alone
// decide (P44), so that no change may follow that these do not permit.
type pose struct {
	plain
	sent uint64
}

// callers are those for whom a member states that it acts.
var callers = []string{"user:root", "oidc:https://issuer.example#alice", "cert:cn:admin", "local:0", "root", "n0", "user:1"}

// ownedPrefix begins the keys that one node alone may write, where roles pose as others.
const ownedPrefix = "/yours/"

func (x *pose) tick(l *liar) {
	if !l.w.firing || !l.may() {
		return
	}
	class, content := x.content(l)
	x.sent++
	m := l.w.mutation(scope.Txn{}, binary.BigEndian.AppendUint64(fmt.Appendf(nil, "pose %d/", l.index), x.sent))
	m.Class, m.Content, m.Caller = class, canon.Encode(content), callers[l.rand.IntN(len(callers))]
	key := x.signer(l)
	if class != scope.Govern && l.rand.IntN(4) == 0 { // a token of the member's own, for more than it may itself
		holder := x.fresh(l)
		g, err := scope.SignGrant(key.Signer(), scope.Grant{Scope: l.w.id, To: holder.Public(), Name: "root", NotAfter: m.ValidUntil})
		must.OK(err, "signing a grant")
		m.Grants, key = [][]byte{g.Encode()}, holder
	}
	b, err := scope.SignReserving(0, key, l.w.Genesis.Policy.Limits, m)
	must.OK(err, "signing a bundle for another")
	l.told("pose", "%s for %s, signed by %s", class, m.Caller, key.Public().ID().Short())
	l.w.watch.posed[b.Mutations()[0].ID] = true
	l.n.propose(machine.Submit{Bundle: b}, func(machine.Reply) {})
	f := &frame{raw: machine.Frame(machine.RawBundle(b.Raw()))}
	for _, to := range l.others() {
		l.sendFrame(to, f)
	}
}

// signer is a key of the coalition: of a member's node, of a member as an anchor, or one that no policy knows.
func (x *pose) signer(l *liar) votes.PrivateKey {
	m := l.members[l.rand.IntN(len(l.members))]
	switch l.rand.IntN(3) {
	case 0:
		return m.author
	case 1:
		return *m.key
	}
	return x.fresh(l)
}

func (x *pose) fresh(l *liar) votes.PrivateKey {
	seed := make([]byte, 32)
	binary.BigEndian.PutUint64(seed, l.rand.Uint64())
	key, err := votes.KeyFromSeed(votes.Ed25519, seed)
	must.OK(err, "making a key")
	return key.Telling(l.w.made.add)
}

// content is a change that some author may make, and mostly not the member.
func (x *pose) content(l *liar) (scope.Class, any) {
	r := l.rand
	value := fmt.Appendf(nil, "%x", r.Uint32())
	key := fmt.Appendf(nil, "%sk%d", []string{ownedPrefix, scenario.RuledPrefix, scenario.OwnPrefix, "/x"}[r.IntN(4)], r.IntN(ruledKeys))
	write := func(op scope.Op) (scope.Class, any) { return scope.Write, scope.Txn{Success: []scope.Op{op}} }
	switch r.IntN(10) {
	case 0:
		return write(scope.Op{Kind: scope.OpDelete, Key: key})
	case 1:
		return write(scope.Op{Kind: scope.OpDelete, Key: []byte(scenario.RuledPrefix), End: scope.PrefixEnd([]byte(scenario.RuledPrefix))})
	case 2:
		a := scope.Action{Key: key, Verb: []string{"age", "take"}[r.IntN(2)], Class: action.Claim}
		return scope.Act, a
	case 3:
		return scope.Act, scope.Action{Key: key, Verb: "extend", Class: action.Write, Value: value}
	case 4: // another's object under a name that the member may write, or the other way
		to := fmt.Appendf(nil, "/b%d", r.IntN(ruledKeys))
		if r.IntN(2) == 0 {
			key, to = to, key
		}
		return scope.Name, scope.Naming{Kind: []scope.NameKind{scope.Bind, scope.Move}[r.IntN(2)], Key: key, To: to}
	case 5:
		users, err := l.n.state().Access()
		must.OK(err, "reading users and roles")
		return scope.Permit, scope.Access{Revision: users.Revision + 1}
	case 6:
		return scope.Lease, scope.LeaseRequest{Kind: scope.LeaseGrant, IDs: []int64{int64(poseLease + r.IntN(3))}, TTL: 5, Asked: l.n.local()}
	case 7:
		return write(scope.Op{Kind: scope.OpPut, Key: append(key, "/leased"...), Value: value, Lease: int64(poseLease + r.IntN(3))})
	}
	return write(scope.Op{Kind: scope.OpPut, Key: key, Value: value})
}

// poseLease is the first lease of those that pose as others, after those of programs.
const poseLease = 2000

// withOwner adds an entry to the authors of a world in which roles pose as others: one key alone may write the keys
// that are owned.
func (w *World) withOwner(all []scope.Author) []scope.Author {
	if !w.Scenario.Poses() {
		return all
	}
	all = append(all, scope.Author{Name: "owner", Who: scope.OneKey, Key: w.Nodes[0].author.Public(), Prefixes: [][]byte{[]byte(ownedPrefix)}, Verbs: []string{"delete", "put"}})
	slices.SortFunc(all, func(a, b scope.Author) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// owning makes the owner write its keys.
func (w *World) owning() {
	if !w.Scenario.Poses() {
		return
	}
	n := w.Nodes[0]
	for i := range 8 {
		w.at(time.Duration(w.acts.Int64N(int64(w.Scenario.Stop))), func() {
			key := fmt.Appendf(nil, "%sk%d", ownedPrefix, i%ruledKeys)
			m := w.mutation(scope.Txn{Success: []scope.Op{{Kind: scope.OpPut, Key: key, Value: []byte{byte(i)}}}}, fmt.Appendf(nil, "owner %08d", i))
			if w.firing && n.liar == nil {
				n.Submit(m, func(machine.Reply) {})
			}
		})
	}
}
