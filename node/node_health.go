package node

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/quorum"
)

// Check is one thing that health depends on.
type Check struct {
	Name string
	Err  error  // nil if all is well; its text tells people what is missing
	Note string // what else is worth to know while all is well, "" for nothing
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
	return []Check{{Name: "store", Err: n.storeErr()}, {Name: "machine", Err: n.turns(ctx)}}
}

// Ready says whether this node could answer a linearizable read, or order a
// mutation, now.
func (n *Part) Ready(ctx context.Context) []Check {
	if n.vacant.Load() {
		return []Check{{Name: "store", Err: n.storeErr()}, {Name: "state", Err: errVacant}}
	}
	checks := n.Live(ctx)
	if checks[1].Err != nil { // then nothing newer is known
		return checks
	}
	s := n.Status()
	r := n.reach(s)
	return append(checks,
		Check{Name: "quorum", Err: n.quorumErr(r), Note: n.quorumNote(r)}, Check{Name: "reads", Err: n.readsErr(r)},
		Check{Name: "listening", Err: unheardErr(s)}, Check{Name: "caught-up", Err: n.behindErr(s)}, Check{Name: "record", Err: lostErr(s)})
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
	return fmt.Errorf("anchors of weight %d of %d sign, %d is needed to decide; missing: %s",
		r.Weight, r.Total, r.Needed, n.absent(r))
}

func (n *Part) readsErr(r Reach) error {
	if r.Weight >= r.Reads {
		return nil
	}
	return fmt.Errorf("anchors of weight %d of %d sign, answers of %d are needed for a linearizable read; missing: %s",
		r.Weight, r.Total, r.Reads, n.absent(r))
}

// quorumNote says how many anchors may still fail, and names those that do not sign.
func (n *Part) quorumNote(r Reach) string {
	text := fmt.Sprintf("anchors of weight %d of %d sign, %d is needed; ", r.Weight, r.Total, r.Needed)
	switch {
	case r.Failures == 0:
		text += "none may fail"
	case r.Failures == 1:
		text += "1 more may fail"
	default:
		text += fmt.Sprintf("%d more may fail", r.Failures)
	}
	if len(r.Missing) > 0 {
		text += "; missing: " + n.absent(r)
	}
	return text
}

// absentNamed bounds the anchors that are named in one message.
const absentNamed = 8

// absent names the anchors that do not sign, with the reason.
func (n *Part) absent(r Reach) string {
	words := make([]string, len(r.Missing))
	for i, a := range r.Missing {
		words[i] = fmt.Sprintf("%s (%v)", n.measured.name(a), r.Says[a])
	}
	slices.Sort(words)
	if more := len(words) - absentNamed; more > 0 {
		words = append(words[:absentNamed], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(words, ", ")
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

// lostErr is why an anchor that lost its record is not ready.
func lostErr(s Status) error {
	switch {
	case !s.Lost:
		return nil
	case s.Rules.Mode == quorum.Crash: // nobody may lie there, not even by accident
		return fmt.Errorf("this anchor's record is older than ballots that it signed: it signs nothing more in this epoch; "+
			"run it as an observer, without anchor.key, until epoch %d", s.Epoch+1)
	}
	return fmt.Errorf("this anchor's record is older than ballots that it signed: it signs nothing more in this epoch, and signs again with epoch %d", s.Epoch+1)
}
