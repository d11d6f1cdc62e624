package node

import (
	"context"
	"errors"

	"github.com/aweigh/aweigh/internal/refusal"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/scope"
)

// priceOver is added to a price, with a quarter of it, for what is written meanwhile, in units.
const priceOver = 64

// noReserve is the last reserve of a mutation that was not tried yet.
const noReserve = -1

// price returns the reserve of a mutation, in units of cost: its cost on the state that this node has, plus an
// allowance for concurrent writes. If a bundle with the reserve last was executed and needed more, the new reserve is
// larger than last, as a bundle that stays the same is not executed again. The error is scope.ErrTooMuch if no block
// may cost that much; the look that found it out is charged to all clients that ask for a price afterwards. keys says
// that the mutation is a transaction of keys alone.
func (n *Replica) price(ctx context.Context, m scope.Mutation, last int64, keys bool) (int64, error) {
	end, err := n.costs.Begin(ctx, keys, n.prefix)
	if err != nil {
		return 0, err
	}
	defer end()
	v, err := n.views.open()
	if err != nil {
		return 0, err
	}
	units, most, err := v.Price(m, n.runner.now())
	if err == nil && last >= most {
		err = scope.ErrTooMuch
	}
	if errors.Is(err, scope.ErrTooMuch) {
		n.costs.Lost(units, keys)
	}
	if err := errors.Join(err, n.views.release(v)); err != nil {
		return 0, err
	}
	if units == 0 && last == noReserve {
		return 0, nil
	}
	return min(max(units+units/4, 4*last)+priceOver, most), nil
}

// payForPrice makes a peer pay for what executing its bundle costs beyond its bytes, in parts, and waits meanwhile. It
// returns false if the node stops. For an anchor of another scope it does not wait, as in frame: false then means that
// it cannot pay. An anchor of this scope pays nothing: it passes on what others signed, its ballots would wait behind
// the bundle, and its own clients pay at its node.
func (n *Replica) payForPrice(p machine.Peer, b *scope.CheckedBundle) bool {
	if n.epochs.Anchor(p) {
		return true
	}
	if n.budgets.Neighbour(p) {
		if !n.budgets.AllowLooks(p, b.Looks()) {
			n.note(machine.Dropped{From: p, Class: refusal.Full, Why: "mutations above the budget of an anchor of another scope"})
			return false
		}
		return true
	}
	for units := b.Looks(); units > 0; {
		part := min(units, int64(n.budgets.Burst(p)))
		if d := n.budgets.WaitLooks(p, int(part)); d > 0 && !n.pause(d) {
			return false
		}
		units -= part
	}
	return true
}
