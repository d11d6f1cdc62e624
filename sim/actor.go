package sim

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/action"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/sim/scenario"
)

// ruledKeys is how many keys actors quarrel about, below each of the two prefixes.
const ruledKeys = 3

// atOnce is how many things the author that floods asks for at once: more than an entry of a rate of 1 can save up.
const atOnce = 15

// actor is a client that acts on a few objects, writes them, names them, and
// changes users: much of it the rules forbid, and some of it is out of date.
type actor struct {
	w       *World
	at      *Node
	id      int
	made    uint64
	object  aweigh.UID // that it last wrote
	under   []byte     // the key under which it did
	allowed int64      // revision of the users that it last saw
}

// actors starts as many as there are hosts, at most four, the last hosts first:
// observers are among those.
func (w *World) actors(hosts []*Node) {
	most := min(len(hosts), 4)
	for i := range w.Scenario.Load.Acts {
		at := hosts[len(hosts)-1-i%most]
		if i < most {
			w.acting = append(w.acting, &actor{w: w, at: at, id: i, allowed: 1})
		}
		a := w.acting[i%most]
		w.at(time.Duration(w.acts.Int64N(int64(w.Scenario.Stop))), func() {
			if !w.firing {
				return
			}
			for range a.times() {
				a.act()
			}
		})
	}
}

func (a *actor) key() []byte {
	under := scenario.RuledPrefix
	if a.w.acts.IntN(2) == 0 {
		under = scenario.OwnPrefix
	}
	return fmt.Appendf(nil, "%sk%d", under, a.w.acts.IntN(ruledKeys))
}

// times is how often it acts at once: the first of the actors floods where authors have rates.
func (a *actor) times() int {
	if a.id == 0 && a.w.Scenario.Floods() {
		return atOnce
	}
	return 1
}

// act asks for one thing.
func (a *actor) act() {
	r := a.w.acts
	if a.w.Scenario.LeaseQuotas() && r.IntN(4) == 0 {
		a.lease()
		return
	}
	key, value := a.key(), fmt.Appendf(nil, "%016x", r.Uint64())
	act := scope.Action{Key: key}
	if r.IntN(3) == 0 {
		act.Object = a.object
	}
	switch r.IntN(10) {
	case 0, 1:
		a.ask(scope.Write, key, scope.Txn{Success: []scope.Op{{Kind: scope.OpPut, Key: key, Value: value}}})
	case 2:
		a.ask(scope.Write, key, scope.Txn{Success: []scope.Op{{Kind: scope.OpDelete, Key: key}}})
	case 3:
		if to := a.key(); !bytes.Equal(key, to) {
			a.ask(scope.Name, key, scope.Naming{Kind: scope.Bind, Key: key, To: to})
		}
	case 4, 5:
		act.Verb, act.Class, act.Value = "extend", action.Write, value
		a.ask(scope.Act, key, act)
	case 6:
		act.Verb, act.Class = "age", action.Claim
		a.ask(scope.Act, key, act)
	case 7:
		act.Verb, act.Class, act.Value = "take", action.Write, value // as it was, before it became one that claims
		a.ask(scope.Act, key, act)
	case 8:
		act.Verb, act.Class = "take", action.Claim
		a.ask(scope.Act, key, act)
	case 9:
		a.ask(scope.Permit, key, scope.Access{Revision: a.allowed + 1 + r.Int64N(2)})
	}
}

// actorLease is the first lease of actors, after those of roles that pose as others.
const actorLease = 3000

// lease asks for a lease, mostly for one more than the actor may have, or about one of its own.
func (a *actor) lease() {
	r := a.w.acts
	id := int64(actorLease + 8*a.id + r.IntN(6))
	of := scope.LeaseRequest{Kind: scope.LeaseGrant, IDs: []int64{id}, TTL: scope.MinLeaseTTL + r.Int64N(3)}
	switch key := fmt.Appendf(nil, "%sleased%d", scenario.RuledPrefix, id); r.IntN(6) {
	case 0:
		a.ask(scope.Write, key, scope.Txn{Success: []scope.Op{{Kind: scope.OpPut, Key: key, Lease: id}}})
	case 1:
		a.ask(scope.Lease, key, scope.LeaseRequest{Kind: scope.LeaseRevoke, IDs: of.IDs})
	case 2:
		of.Kind, of.TTL = scope.LeaseKeepAlive, 0
		fallthrough
	default:
		a.ask(scope.Lease, key, of)
	}
}

// ask asks for a mutation about a key.
func (a *actor) ask(class scope.Class, key []byte, content any) {
	a.made++
	m := a.w.mutation(scope.Txn{}, binary.BigEndian.AppendUint64(fmt.Appendf(nil, "actor %d/", a.id), a.made))
	m.Class, m.Content = class, canon.Encode(content)
	ask := func(m scope.Mutation, done func(machine.Reply)) { a.at.reserve(0, m, done) }
	if class != scope.Permit && a.w.acts.IntN(3) == 0 {
		ask = a.granted
	}
	ask(m, func(r machine.Reply) {
		if r.Refused == nil && r.Outcome.Code == scope.Pending {
			a.voters(r.Mutation)
		}
		if r.Refused != nil || r.Outcome.Code != scope.Applied {
			return
		}
		for _, one := range r.Outcome.Responses {
			if !one.UID.IsZero() {
				a.object, a.under = one.UID, key
			}
		}
		if class == scope.Permit {
			a.allowed = content.(scope.Access).Revision
		}
	})
}
