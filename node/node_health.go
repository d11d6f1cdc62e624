package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aweigh/aweigh"
)

// Check is one thing that health depends on.
type Check struct {
	Name string
	Err  error // nil if all is well; its text tells people what is missing
}

const (
	// turnWithin is how long the machine may take to answer before it is held to
	// hang: longer than any sync of a disk that works.
	turnWithin = 5 * time.Second
	// farBehind is how many final blocks a node may lack and still count as ready:
	// it fetches so many with one question.
	farBehind = maxBlocks
	// longBehind is how long a node may fetch blocks without a pause and still
	// count as ready.
	longBehind = 3 * time.Second
	// longUnheard is how long an anchor may ask others what they hold, before it
	// signs, and still count as ready: longer than anchors that are there take.
	longUnheard = 2 * time.Second
)

// Live says whether this process can still do its work, whatever the others do:
// if not, only a restart can help.
func (n *Part) Live(ctx context.Context) []Check {
	return []Check{{"store", n.storeErr()}, {"machine", n.turns(ctx)}}
}

// Ready says whether this node could answer a linearizable read, or order a
// mutation, now.
func (n *Part) Ready(ctx context.Context) []Check {
	if n.vacant.Load() {
		return []Check{{"store", n.storeErr()}, {"state", errVacant}}
	}
	checks := n.Live(ctx)
	if checks[1].Err != nil { // then nothing newer is known
		return checks
	}
	s := n.Status()
	r := n.reach(s)
	return append(checks,
		Check{"quorum", n.quorumErr(r)}, Check{"reads", n.readsErr(r)},
		Check{"listening", unheardErr(s)}, Check{"caught-up", n.behindErr(s)}, Check{"record", lostErr(s)})
}

func (n *Part) storeErr() error {
	if f, ok := n.cfg.Store.(interface{ Err() error }); ok {
		return f.Err()
	}
	return nil
}

// turns is nil if the machine takes a turn soon.
func (n *Part) turns(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, turnWithin, fmt.Errorf("the machine has not taken a turn for %v", turnWithin))
	defer cancel()
	_, err := n.look(ctx)
	return err
}

// look is a fresh status.
func (n *Part) look(ctx context.Context) (Status, error) {
	s, err := n.see(ctx, aweigh.Hash{})
	return s.Status, err
}

// see is a fresh status, and whether a mutation is on this node's disk.
func (n *Part) see(ctx context.Context, mutation aweigh.Hash) (seen, error) {
	l := look{mutation, make(chan seen, 1)}
	select {
	case n.runner.looks <- l:
	case <-n.runner.replies.done:
		return seen{}, n.ended()
	case <-ctx.Done():
		return seen{}, context.Cause(ctx)
	}
	select {
	case s := <-l.seen:
		return s, nil
	case <-n.runner.replies.done:
		return seen{}, n.ended()
	case <-ctx.Done():
		return seen{}, context.Cause(ctx)
	}
}

// ended is why a node does not run any more.
func (n *Part) ended() error { return n.runner.replies.stopped }

func (n *Part) quorumErr(r Reach) error {
	if r.Failures >= 0 {
		return nil
	}
	return fmt.Errorf("anchors of weight %d of %d are in reach, %d is needed to decide; missing: %s",
		r.Weight, r.Total, r.Needed, strings.Join(n.names(r.Missing), ", "))
}

func (n *Part) readsErr(r Reach) error {
	if r.Weight >= r.Reads {
		return nil
	}
	return fmt.Errorf("anchors of weight %d of %d are in reach, answers of %d are needed for a linearizable read; missing: %s",
		r.Weight, r.Total, r.Reads, strings.Join(n.names(r.Missing), ", "))
}

func (n *Part) behindErr(s Status) error {
	if s.Known > s.Head.Height+farBehind {
		return fmt.Errorf("at height %d of at least %d", s.Head.Height, s.Known)
	}
	if s.Told > s.Head.Height+farBehind {
		return fmt.Errorf("at height %d, and an anchor says that it has %d", s.Head.Height, s.Told)
	}
	if since := n.behindSince.Load(); since != nil && time.Since(*since) > longBehind {
		return fmt.Errorf("fetching final blocks for %v, at height %d", time.Since(*since).Round(time.Second), s.Head.Height)
	}
	return nil
}

// unheardErr is why an anchor that signs nothing yet is not ready: the quorum that
// it has not heard is what writes and reads need, too.
func unheardErr(s Status) error {
	if s.Unheard <= longUnheard {
		return nil
	}
	return fmt.Errorf("this anchor signs nothing until it has heard of a quorum, and has asked for %v", s.Unheard.Round(time.Second))
}

// errLost is why an anchor that lost its record is not ready.
var errLost = errors.New("this anchor's record is older than ballots that it signed: it signs nothing more in this epoch; run it as an observer, without anchor.key")

func lostErr(s Status) error {
	if s.Lost {
		return errLost
	}
	return nil
}

// names are those of anchors, in order.
func (n *Part) names(anchors []aweigh.AnchorID) []string {
	out := make([]string, len(anchors))
	for i, a := range anchors {
		out[i] = n.measured.name(a)
	}
	slices.Sort(out)
	return out
}
