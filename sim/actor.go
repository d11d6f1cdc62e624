package sim

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/action"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/node"
	"github.com/aweigh/aweigh/scope"
)

// ruledPrefix begins the keys that actors quarrel about, and ownPrefix those of them
// that only anchors may write.
const (
	ruledPrefix = "/act/"
	ownPrefix   = ruledPrefix + "own/"
	ruledKeys   = 3 // below each of the two
)

// rules are what the policy of a world with actors says of verbs. The watch knows
// by itself what they mean, see decree.
var rules = action.Table{
	{Verb: "age", Class: action.Claim, When: "1 / (object.version - 2) < 2"}, // cannot be worked out for version 2
	{Verb: "extend", Class: action.Write, When: "object.version < 3 && caller.anchor != 'n0'"},
	{Verb: "take", Class: action.Claim, When: "caller.weight > 0 && caller.weight % 2 == 0"},
	{Verb: "write", Class: action.Write, When: fmt.Sprintf("!object.key.startsWith(%q) || caller.anchor != ''", ownPrefix)},
}

// actor is a client that acts on a few objects, writes them, names them, and
// changes users: much of it the rules forbid, and some of it is out of date.
type actor struct {
	w       *World
	at      *Node
	id      int
	made    uint64
	object  aweigh.UID // that it last wrote
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
		w.At(time.Duration(w.acts.Int64N(int64(w.Scenario.Stop))), func() {
			if w.firing {
				a.act()
			}
		})
	}
}

func (a *actor) key() []byte {
	under := ruledPrefix
	if a.w.acts.IntN(2) == 0 {
		under = ownPrefix
	}
	return fmt.Appendf(nil, "%sk%d", under, a.w.acts.IntN(ruledKeys))
}

// act asks for one thing.
func (a *actor) act() {
	r := a.w.acts
	key, value := a.key(), fmt.Appendf(nil, "%016x", r.Uint64())
	act := scope.Action{Key: key}
	if r.IntN(3) == 0 {
		act.Object = a.object
	}
	switch r.IntN(10) {
	case 0, 1:
		a.ask(scope.Write, scope.Txn{Success: []scope.Op{{Kind: scope.OpPut, Key: key, Value: value}}})
	case 2:
		a.ask(scope.Write, scope.Txn{Success: []scope.Op{{Kind: scope.OpDelete, Key: key}}})
	case 3:
		if to := a.key(); !bytes.Equal(key, to) {
			a.ask(scope.Name, scope.Naming{Kind: scope.Bind, Key: key, To: to})
		}
	case 4, 5:
		act.Verb, act.Class, act.Value = "extend", action.Write, value
		a.ask(scope.Act, act)
	case 6:
		act.Verb, act.Class = "age", action.Claim
		a.ask(scope.Act, act)
	case 7:
		act.Verb, act.Class, act.Value = "take", action.Write, value // as it was, before it became one that claims
		a.ask(scope.Act, act)
	case 8:
		act.Verb, act.Class = "take", action.Claim
		a.ask(scope.Act, act)
	case 9:
		a.ask(scope.Permit, scope.Access{Revision: a.allowed + 1 + r.Int64N(2)})
	}
}

func (a *actor) ask(class scope.Class, content any) {
	a.made++
	m := a.w.mutation(scope.Txn{}, binary.BigEndian.AppendUint64(fmt.Appendf(nil, "actor %d/", a.id), a.made))
	m.Class, m.Content = class, canon.Encode(content)
	a.at.reserve(0, m, func(r node.Reply) {
		if r.Refused != nil || r.Outcome.Code != scope.Applied {
			return
		}
		for _, one := range r.Outcome.Responses {
			if !one.UID.IsZero() {
				a.object = one.UID
			}
		}
		if class == scope.Permit {
			a.allowed = content.(scope.Access).Revision
		}
	})
}
