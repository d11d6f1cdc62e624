package edge

import (
	"context"
	"time"

	"github.com/aweigh/aweigh/action"
	"github.com/aweigh/aweigh/node"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/node/referral"
	"github.com/aweigh/aweigh/scope"
)

// inspect makes all other calls of a node's API. It checks that each call returns in time.
func (w *world) inspect(ctx context.Context) {
	c := w.newClient(2000)
	questions := w.questions(c)
	for c.pause(ctx) {
		q := questions[c.r.IntN(len(questions))]
		w.call(c.seat(), "a question", time.Duration(2+c.r.IntN(4))*time.Second, func(ctx context.Context, n *node.Node) error {
			q(ctx, n)
			return nil
		})
	}
}

// questions are what nodes may be asked for.
func (w *world) questions(c *client) []func(context.Context, *node.Node) {
	k := func() []byte { return []byte(key(w.plan.Under[c.r.IntN(len(w.plan.Under))]+"r", c.r.IntN(3))) }
	return []func(context.Context, *node.Node){
		func(ctx context.Context, n *node.Node) {
			n.Root().Status()
			n.Root().Counts()
			n.Root().Overview()
			n.Root().Reach()
			n.Scopes()
			n.Peers()
		},
		func(ctx context.Context, n *node.Node) { _, _ = n.Root().Government(nil) },
		func(ctx context.Context, n *node.Node) { n.Root().Live(ctx); n.Root().Ready(ctx) },
		func(ctx context.Context, n *node.Node) {
			_, _, _, _, _ = n.Root().Explain(w.genesis.Anchors[0].Key.ID(), 10)
		},
		func(ctx context.Context, n *node.Node) { _, _, _ = n.Root().Checkpoint(ctx, 0, true) },
		func(ctx context.Context, n *node.Node) {
			_, _, _ = n.Invite(ctx, node.Tickets{Uses: 1, For: time.Minute}, node.Once{})
			n.Pin()
			n.Root().LostBelow()
			n.WatchMemory()
			n.Root().Followed()
		},
		func(ctx context.Context, n *node.Node) { _, _, _ = n.Root().HandoversAfter(0, 10, 1<<20) },
		func(ctx context.Context, n *node.Node) { _, _, _ = n.Prove(ctx, k()) },
		func(ctx context.Context, n *node.Node) { _, _, _ = n.Lineage(ctx, k(), 5) },
		func(ctx context.Context, n *node.Node) { _, _ = n.Object(ctx, "a", 5, c.r.IntN(2) == 0) },
		func(ctx context.Context, n *node.Node) { _, _, _ = n.Resolve(ctx, k(), 0, c.r.IntN(2) == 0) },
		func(ctx context.Context, n *node.Node) {
			_, _, _ = n.Redirects(ctx, []byte("/"), []byte("0"), 10, true)
		},
		func(ctx context.Context, n *node.Node) {
			_, _ = n.Naming(ctx, scope.Naming{Kind: scope.Move, Key: []byte(key("/a/m", c.r.IntN(3))), To: []byte(key("/a/n", c.r.IntN(3)))}, node.Once{})
		},
		func(ctx context.Context, n *node.Node) {
			_, _ = n.Look(ctx, &scope.Txn{Success: []scope.Op{{Kind: scope.OpRange, Key: k()}}}, c.r.IntN(2) == 0)
		},
		func(ctx context.Context, n *node.Node) {
			_, _ = n.Latest(ctx, []byte("/"), []byte("0"), c.r.IntN(2) == 0)
		},
		func(ctx context.Context, n *node.Node) { _, _, _, _, _ = n.Lease(ctx, 7, true) },
		func(ctx context.Context, n *node.Node) { _, _, _ = n.Motions(true); _, _, _ = n.Motion(nil) },
		func(ctx context.Context, n *node.Node) { _, _ = n.Access(ctx, true) },
		func(ctx context.Context, n *node.Node) {
			_, _ = n.Judge(ctx, node.ActionQuery{Verb: "look", Key: k()}, true)
		},
		func(ctx context.Context, n *node.Node) { _, _ = n.Signal(ctx, "ring", k(), []byte("now"), node.Once{}) },
		func(ctx context.Context, n *node.Node) {
			ctx, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			_ = n.WatchSignals(ctx, []byte("/"), []byte("0"), func() error { return nil }, func(node.Signal, uint64) error { return nil })
		},
		func(ctx context.Context, n *node.Node) {
			var all []machine.Peer
			for _, s := range w.seats {
				all = append(all, machine.Peer(s.id.String()))
			}
			n.Endpoints(ctx, all)
			n.AskAnchors(ctx)
		},
		func(ctx context.Context, n *node.Node) {
			_, _ = n.Act(ctx, scope.Action{Verb: "set", Class: action.Write, Key: []byte("/a/set"), Value: []byte(c.value())}, node.Once{})
		},
		func(ctx context.Context, n *node.Node) {
			for _, r := range []scope.Range{{CountOnly: true}, {KeysOnly: true, Limit: 3}, {Limit: 2, Sort: scope.ByMod}} {
				_, _, _ = n.Range(ctx, []byte("/"), []byte("0"), r, false)
			}
		},
		func(ctx context.Context, n *node.Node) {
			if s := n.Scopes(); len(s) > 1 {
				_, _ = n.In(string(s[1].Genesis.Prefix()))
			}
			all, _, _ := n.Motions(false)
			for _, m := range all {
				_, _, _ = n.Root().ProveMotion(ctx, m.ID)
				_, _, _ = n.Motion(m.ID[:4])
				_, _, _ = n.ExportMotion(ctx, m.ID[:])
				_, _ = n.HandIn(ctx, m.Waiting)
				if c.r.IntN(4) == 0 {
					_, _ = n.Withdraw(ctx, m.ID[:], node.Once{})
				}
			}
		},
		func(ctx context.Context, n *node.Node) { _, _ = n.Holds(ctx, referral.Keys(k())) },
		func(ctx context.Context, n *node.Node) {
			if v, err := n.ReadOf(ctx, referral.Keys(k()), true); err == nil {
				_ = v.Close()
			}
		},
	}
}
