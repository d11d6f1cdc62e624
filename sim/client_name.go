package sim

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/scope"
)

// aliasCount is how many aliases clients quarrel about.
const aliasCount = 5

func (w *World) aliasName(i int) string {
	under := "/"
	if all := w.Scenario.Load.Under; len(all) > 0 { // of one prefix, so that they can be handed over
		under = all[len(all)-1]
	} else if i%2 == 1 && guarded(&w.Scenario) && !w.watch.counts() { // changes of its names wait for approval, at some time
		under = guardedPrefix
	}
	return fmt.Sprintf("%sn%d", under, i)
}

// name changes which objects a few aliases name. Clients do not know of each
// other, so that many of their requests are in vain.
func (c *client) name() {
	w, r := c.w, c.w.naming
	key, to := w.aliasName(r.IntN(aliasCount)), w.aliasName(r.IntN(aliasCount))
	for to == key {
		to = w.aliasName(r.IntN(aliasCount))
	}
	d := &operation{client: c.id, kind: "name", key: key}
	n := scope.Naming{Key: []byte(key)}
	nonce := binary.BigEndian.AppendUint64(nil, r.Uint64())
	m := w.mutation(scope.Txn{Success: []scope.Op{{Kind: scope.OpPut, Key: []byte(key), Value: nonce}}}, nonce)
	switch r.IntN(10) {
	case 0, 1, 2:
		d.learn = func(out scope.Outcome) {
			if len(out.Responses) == 1 {
				c.version = scope.Naming{Object: out.Responses[0].UID, From: []byte(key), Revision: out.Revision}
			}
		}
	case 3:
		m = w.mutation(scope.Txn{Success: []scope.Op{{Kind: scope.OpDelete, Key: []byte(key)}}}, nonce)
	case 4, 5:
		n.Kind, n.To = scope.Bind, []byte(to)
	case 6, 7:
		n.Kind, n.To = scope.Move, []byte(to)
		if r.IntN(2) == 0 {
			n.Until = w.now.Add(5*time.Second + time.Duration(r.Int64N(int64(w.Scenario.Stop))))
		}
	case 8:
		n.Kind = scope.Unbind
	case 9:
		if n = c.version; n.From != nil && r.IntN(2) == 0 {
			n.Kind, n.To = scope.Fork, []byte(to)
		} else if n.From != nil {
			n.Kind, n.Key = scope.Rollback, []byte(key)
		}
	}
	if n.Kind != 0 {
		m.Class, m.Content = scope.Name, canon.Encode(n)
	}
	c.submit(c.at.part(key), approved(w, d, m.Class), m, 0, c.begin())
}

// approved has the honest anchors approve an operation that waits for approval.
func approved(w *World, d *operation, class scope.Class) *operation {
	learn := d.learn
	d.learn = func(out scope.Outcome) {
		if out.Code == scope.Pending && w.firing {
			if class == scope.Name {
				w.watch.reach("naming waits for approval")
			}
			w.approve(d.mutation)
		}
		if learn != nil {
			learn(out)
		}
	}
	return d
}
