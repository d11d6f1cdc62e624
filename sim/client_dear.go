package sim

import (
	"encoding/binary"
	"fmt"
	"strings"
	"time"

	"github.com/aweigh/aweigh/scope"
)

// putOverCost asks for a write that costs more than its form allows, as it reads a large value, too. Once the
// client has the answer that nothing was done, it makes the value small: now the write would fit, if
// an anchor ordered its bundle again. The client gave it up, so it must stay undone.
func (c *client) putOverCost() {
	large := fmt.Sprintf("/large%d", c.id)
	c.put(large, strings.Repeat("x", 64<<10), nil, func(scope.Outcome) {
		key, value := c.w.keyName(c.w.dear.IntN(c.w.Scenario.Load.Keys)), fmt.Sprintf("%016x", c.w.dear.Uint64())
		if c.at.part(key) != c.at.part(large) {
			return
		}
		look := scope.Op{Kind: scope.OpRange, Key: []byte(large)}
		c.put(key, value, []scope.Op{look}, func(o scope.Outcome) {
			if o.Code != scope.Exceeded {
				return
			}
			c.put(large, "small", nil, func(scope.Outcome) { c.w.watch.reach("exceeded") })
		})
	})
}

// put writes a value under a key, with other operations before it; then gets the outcome, if there is one.
func (c *client) put(key, value string, with []scope.Op, then func(scope.Outcome)) {
	c.w.at(time.Millisecond, func() {
		c.queue(func() {
			d := &operation{client: c.id, kind: "write", key: key, value: value, learn: then}
			put := scope.Op{Kind: scope.OpPut, Key: []byte(key), Value: []byte(value)}
			t := scope.Txn{Success: append(with, put)}
			nonce := binary.BigEndian.AppendUint64(nil, c.w.dear.Uint64())
			c.submit(c.at.part(key), d, c.w.mutation(t, nonce), 0, c.begin())
		})
	})
}
