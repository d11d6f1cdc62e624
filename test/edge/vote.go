package edge

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aweigh/aweigh/action"
	"github.com/aweigh/aweigh/node"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
)

// guarded is the prefix of keys that are changed by motions alone.
const guarded = "/m/"

// verbs are what the policy has rules for.
var verbs = action.Table{{Verb: "look", Class: action.Read}, {Verb: "ring", Class: action.Signal}, {Verb: "set", Class: action.Write}}

// vote proposes changes of guarded keys, which the anchors approve at their own nodes, until ctx ends.
func (w *world) vote(ctx context.Context) {
	c := w.newClient(4000)
	open := make(map[string]bool)
	for i := 0; c.pause(ctx); i++ {
		w.motion(c, i, open)
	}
}

// motion is one motion, from its proposal to its end. What it proposes stands in open unless it ended: then it may
// still be done later than what other motions propose.
func (w *world) motion(c *client, number int, open map[string]bool) {
	k, v := fmt.Sprintf("%s%02d", guarded, number%4), fmt.Sprint("motion ", number)
	var id []byte
	open[v] = true
	if !w.call(c.seat(), "proposing", 5*time.Second, func(ctx context.Context, n *node.Node) error {
		r, err := n.Txn(ctx, scope.Txn{Success: []scope.Op{put(k, v)}}, node.Once{})
		id = r.Mutation[:]
		return err
	}) {
		return
	}
	approvals := 0
	for _, i := range c.r.Perm(w.plan.Anchors) {
		if w.call(w.seats[i], "voting", 5*time.Second, func(ctx context.Context, n *node.Node) error {
			_, err := n.Vote(ctx, id, votes.Approve, "")
			if errors.Is(err, machine.ErrNoMotion) || errors.Is(err, node.ErrUnseated) { // it lags, or the motion is closed
				err = errGone
			}
			return err
		}) {
			approvals++
		}
	}
	if approvals < w.plan.Anchors {
		return
	}
	var end *scope.Ending
	over := w.call(c.seat(), "awaiting a motion", 10*time.Second, func(ctx context.Context, n *node.Node) error {
		err := n.AwaitMotion(ctx, id, func(m node.Motion, _ scope.Head) error {
			end = m.Ending
			return nil
		})
		if errors.Is(err, machine.ErrNoMotion) {
			err = errGone
		}
		return err
	})
	if !over {
		return
	}
	delete(open, v)
	if end == nil || end.Fate != scope.Carried { // another client withdrew it
		return
	}
	w.count("motions", 1)
	x, ok := c.look(c.seat(), "read of "+k, []byte(k), nil, scope.Range{}, true, 5*time.Second)
	if got := x.got[k]; ok && got != v && !open[got] {
		w.fail("motion", "%s is %q after a motion that all approved for %q: %v", k, got, v, end)
	}
}

// admit has an observer apply for a seat, and the anchors approve it.
func (w *world) admit(ctx context.Context) {
	if !rest(ctx, w.plan.Length/3) {
		return
	}
	s := w.seats[len(w.seats)-1]
	sponsor := w.genesis.Anchors[0].Key.ID()
	for ctx.Err() == nil {
		var d scope.Decision
		seated := false
		w.call(s, "applying", 5*time.Second, func(ctx context.Context, n *node.Node) (err error) {
			if d, _, err = n.Root().Apply(ctx, sponsor, "", node.Once{}); errors.Is(err, node.ErrSeated) || errors.Is(err, scope.ErrInvalid) {
				seated, err = errors.Is(err, node.ErrSeated), errGone
			}
			return err
		})
		if seated {
			w.count("admissions", 1)
			return
		}
		if d.Kind != 0 {
			for _, a := range w.seats[:w.plan.Anchors] {
				w.call(a, "approving", 5*time.Second, func(ctx context.Context, n *node.Node) error {
					if _, err := n.Root().Govern(ctx, d, node.Once{}); err != nil && !tolerable(err) {
						return errGone // it is in effect already
					}
					return nil
				})
			}
		}
		rest(ctx, 2*time.Second)
	}
}
