package sim

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/aweigh/aweigh/internal/must"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/sim/scenario"
	"github.com/aweigh/aweigh/votes"
)

// granted asks for a mutation with another key than that of the actor's node: a holder of grants, which may be too
// narrow, over, or revoked when the mutation executes.
func (a *actor) granted(m scope.Mutation, done func(machine.Reply)) {
	r := a.w.acts
	by := a.at.author
	for range 1 + r.IntN(2) {
		seed := make([]byte, 32)
		binary.BigEndian.PutUint64(seed, r.Uint64())
		holder, err := votes.KeyFromSeed(votes.Ed25519, seed)
		must.OK(err, "making a key")
		holder = holder.Telling(a.w.made.add)
		g, err := scope.SignGrant(by.Signer(), a.grant(holder.Public()))
		must.OK(err, "signing a grant")
		m.Grants, by = append(m.Grants, g.Encode()), holder
		m.ValidUntil = min(m.ValidUntil, g.NotAfter)
	}
	b, err := scope.SignReserving(0, by, a.w.Genesis.Policy.Limits, m)
	must.OK(err, "signing a bundle under grants")
	if a.at.machine == nil {
		return
	}
	a.at.propose(machine.Submit{Bundle: b}, func(x machine.Reply) {
		if x.Refused == nil && x.Outcome.Code == scope.Applied {
			a.w.watch.reach("grant")
		}
		done(x)
	})
}

// grant is a drawn one, without a signature.
func (a *actor) grant(to votes.PublicKey) scope.Grant {
	r := a.w.acts
	g := scope.Grant{
		Scope: a.w.id, To: to, Name: fmt.Sprintf("grant%d", a.made),
		NotAfter: a.w.watch.time.from(a.w.now).Add(time.Duration(r.IntN(20)-1) * time.Second),
	}
	if r.IntN(3) > 0 {
		g.Prefixes = [][]byte{[]byte([]string{scenario.RuledPrefix, scenario.OwnPrefix, "/"}[r.IntN(3)])}
	}
	if r.IntN(3) == 0 {
		g.Verbs = [][]string{{"put"}, {"alias", "delete", "extend", "put"}, {"age", "put", "take"}}[r.IntN(3)]
	}
	if r.IntN(2) == 0 && !a.object.IsZero() { // the key named the object once, and may name it still
		g.Record, g.Object = a.key(), a.object
		if r.IntN(4) > 0 {
			g.Record = a.under
		}
	}
	return g
}
