package node

import (
	"context"
	"errors"
	"time"

	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/scope"
)

// Once the scope has a quorum again, the members of an island bring what it decided into the scope: the first of them
// at once, and each other one only if those before it make no headway.

const (
	// rejoinTurn is how much later the next member begins.
	rejoinTurn = 5 * time.Second
	// rejoinPause is how long a member waits after an attempt that came too early, or failed.
	rejoinPause = time.Second
	// rejoinRoom is left of a mutation's bytes for what is around its content.
	rejoinRoom = 4 << 10
)

// tendIsland notes whether the scope decides again, and brings back what the island decided.
func (n *Node) tendIsland(is *island) {
	all := is.replica.LastHead().LineageSize
	n.islands.mu.Lock()
	is.done = is.done && all == is.all // a member may have lacked blocks
	rests := is.done || is.busy
	n.islands.mu.Unlock()
	if rests {
		return
	}
	decides := n.apart(is.of) == 0 && is.of.Reach().Failures >= 0
	turn := time.Duration(is.rank()) * rejoinTurn
	n.islands.mu.Lock()
	defer n.islands.mu.Unlock()
	if is.closed.IsZero() {
		if !decides && is.of.LastHead().Block == is.genesis.Descent.Block {
			return
		}
		is.closed = time.Now()
		is.of.log.Info("the island takes no more changes: the scope decides again", "island", is.replica.id.Short())
	}
	if decides && time.Since(is.closed) >= turn {
		is.busy = n.spawn("bringing back an island", func(ctx context.Context) { n.rejoin(ctx, is) })
	}
}

// rejoin brings an island's decisions into the scope, until the scope has all of them or has no quorum.
func (n *Node) rejoin(ctx context.Context, is *island) {
	defer func() {
		n.islands.mu.Lock()
		is.busy = false
		n.islands.mu.Unlock()
	}()
	for ctx.Err() == nil && n.apart(is.of) == 0 {
		all := is.replica.LastHead().LineageSize
		done, err := n.rejoinNext(ctx, is)
		if refused := islandRefused(err); done || refused != "" {
			n.islands.mu.Lock()
			if !is.done {
				is.ended = time.Now()
			}
			is.done, is.all, is.refused = true, all, refused
			n.islands.mu.Unlock()
			if refused != "" {
				is.of.measured.islandsRefused.Add(1)
				is.of.log.Warn("the scope takes no more of an island", "island", is.replica.id.Short(), "why", refused)
			}
			return
		}
		if err != nil {
			is.of.log.Debug("an island has not rejoined yet", "island", is.replica.id.Short(), "error", err)
			if !is.of.pauseFor(ctx, rejoinPause) {
				return
			}
		}
	}
}

// islandRefused returns why the scope takes no more of an island, whatever its members do; "" if it may take more.
func islandRefused(err error) string {
	for _, why := range []error{scope.ErrIslandForked, scope.ErrIslandOld} {
		if errors.Is(err, why) {
			return scope.Reason(why)
		}
	}
	return ""
}

// rejoinFailure is the error that the outcome of a Rejoining stands for.
func rejoinFailure(reason string) error {
	for _, why := range []error{scope.ErrIslandForked, scope.ErrIslandOld} {
		if reason == scope.Reason(why) {
			return why
		}
	}
	return errors.New(reason)
}

// rejoinNext takes one step; done reports that nothing is left to do.
func (n *Node) rejoinNext(ctx context.Context, is *island) (done bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, n.cfg.Timeout)
	defer cancel()
	p, c := is.of, is.replica
	all := c.LastHead().LineageSize
	if all == is.genesis.Descent.Keys { // nothing was decided
		return true, nil
	}
	rec, err := is.record(ctx)
	if err != nil {
		return false, err
	}
	if rec != nil && rec.Next >= all {
		err := n.voteOnAside(ctx, is, rec)
		return err == nil, err
	}
	content, err := is.next(ctx, rec)
	if err == nil && content == nil { // no header names the rest yet, and one needs a quorum of the island
		if err = c.cover(ctx, c.LastHead().Height); err == nil {
			content, err = is.next(ctx, rec)
		} else {
			n.wakeMembers(is)
		}
	}
	if err != nil || content == nil {
		return false, err
	}
	once := p.filled(Once{Justification: "what anchors decided without a quorum"})
	m := p.mutation(scope.Rejoin, content, once)
	v, err := p.Read(ctx, false)
	if err != nil {
		return false, err
	}
	out, reserve, err := v.Foresee(m, p.time())
	if err = errors.Join(err, v.Close()); err != nil {
		return false, err
	}
	if out.Code == scope.Failed { // another member was first, or it is too early
		return false, rejoinFailure(out.Reason)
	}
	s := &submission{ctx: ctx, mutation: m, reserve: reserve, alone: true, done: make(chan machine.Reply, 1)}
	r, err := p.attempt(ctx, s)
	if err == nil && r.Code != scope.Applied {
		err = rejoinFailure(r.Reason)
	}
	return false, err
}

// next is the next Rejoining of the island, as far as a certified header names its lineage; nil if that names no more
// than the scope has.
func (is *island) next(ctx context.Context, rec *scope.IslandRecord) ([]byte, error) {
	v, err := is.replica.Read(ctx, false)
	if err != nil {
		return nil, err
	}
	defer v.Close()
	src, err := is.source(v)
	if err != nil {
		return nil, err
	}
	re := src.Announcement()
	switch {
	case rec == nil && src.Final.Header.LineageSize == is.genesis.Descent.Keys, rec != nil && src.Final.Header.LineageSize <= rec.Next:
		return nil, nil
	case rec != nil:
		if re, err = src.Next(rec.Next, is.of.Limits().MutationBytes-rejoinRoom); err != nil {
			return nil, err
		}
	}
	return canon.Encode(re), nil
}

// record is what the scope has on record of the island, nil if nothing.
func (is *island) record(ctx context.Context) (rec *scope.IslandRecord, err error) {
	v, err := is.of.Read(ctx, true)
	if err != nil {
		return nil, err
	}
	all, err := v.Islands()
	for i := range all {
		if all[i].ID == is.replica.id {
			rec = &all[i]
		}
	}
	return rec, errors.Join(err, v.Close())
}

// source is what a view of the island shows, up to the newest block that can be proven final.
func (is *island) source(v *View) (*scope.IslandSource, error) {
	h := is.replica.History()
	final, err := h.Cover(v.Head().Height, 0)
	if err != nil {
		return nil, err
	}
	hands, err := h.Handovers(0, 1<<10)
	if err != nil {
		return nil, err
	}
	terms, _, err := is.of.History().TermsAt(is.of.Genesis(), is.genesis.Descent.Height+1) // of the epoch on top of it
	if err != nil {
		return nil, err
	}
	return &scope.IslandSource{State: v.State, Genesis: is.genesis, Terms: terms, Handovers: hands, Final: final, Block: h.Block}, nil
}
