package node

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/quorum"
)

// Check is one thing that health depends on.
type Check struct {
	Name string
	Err  error  // nil if all is well; otherwise its text says what is missing
	Note string // what else is worth knowing while all is well, "" for nothing
}

const (
	// turnWithin is how long the machine may take to answer before it counts as hanging: longer than any sync of a
	// working disk.
	turnWithin = 5 * time.Second
	// farBehind is how many final blocks a node may lack and still count as ready: it fetches that many with one
	// question.
	farBehind = machine.MaxBlocks
	// longBehind is how long a node may fetch blocks without a pause and still count as ready.
	longBehind = 3 * time.Second
	// longUnheard is how long an anchor may ask others what they hold, before it signs, and still count as ready:
	// longer than connected anchors take to answer.
	longUnheard = 2 * time.Second
)

// Live reports whether this process can still do its work, whatever the other nodes do. If not, only a restart can
// help.
func (n *Replica) Live(ctx context.Context) []Check {
	return []Check{{Name: "store", Err: n.storeErr()}, {Name: "machine", Err: n.turns(ctx)}}
}

// Ready reports whether this node could now answer a linearizable read, or order a mutation.
func (n *Replica) Ready(ctx context.Context) []Check {
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
		Check{Name: "listening", Err: unheardErr(s)}, Check{Name: "caught-up", Err: n.behindErr(s)}, Check{Name: "record", Err: lostErr(s)},
		Check{Name: "clock", Err: n.clockErr()})
}

func (n *Replica) storeErr() error {
	if f, ok := n.cfg.Store.(interface{ Err() error }); ok {
		return f.Err()
	}
	return nil
}

// turns returns nil if the machine takes a turn within turnWithin.
func (n *Replica) turns(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, turnWithin, fmt.Errorf("the machine has not taken a turn for %v", turnWithin))
	defer cancel()
	_, err := n.look(ctx)
	return err
}

// look returns a fresh status.
func (n *Replica) look(ctx context.Context) (machine.Status, error) {
	s, err := n.see(ctx, aweigh.Hash{})
	return s.Status, err
}

// see returns a fresh status, and whether a mutation is on this node's disk.
func (n *Replica) see(ctx context.Context, mutation aweigh.Hash) (seen, error) {
	return n.take(ctx, look{mutation: mutation})
}

// take takes a look.
func (n *Replica) take(ctx context.Context, l look) (seen, error) {
	l.seen = make(chan seen, 1)
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

// ended returns why the node has stopped.
func (n *Replica) ended() error { return n.runner.replies.stopped }

func (n *Replica) quorumErr(r Reach) error {
	if r.Failures >= 0 {
		return nil
	}
	return fmt.Errorf("anchors of weight %d of %d sign, %d is needed to decide; missing: %s",
		r.Weight, r.Total, r.Needed, n.absent(r))
}

func (n *Replica) readsErr(r Reach) error {
	if r.Answers >= r.Reads {
		return nil
	}
	return fmt.Errorf("anchors of weight %d of %d answer, answers of %d are needed for a linearizable read; missing: %s",
		r.Answers, r.Total, r.Reads, n.absent(r))
}

// quorumNote says how many more anchors may fail, and names those that do not sign.
func (n *Replica) quorumNote(r Reach) string {
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
func (n *Replica) absent(r Reach) string {
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

func (n *Replica) behindErr(s machine.Status) error {
	if s.Known > s.Head.Height+farBehind {
		return fmt.Errorf("at height %d of at least %d", s.Head.Height, s.Known)
	}
	if s.Told > s.Head.Height+farBehind {
		return fmt.Errorf("at height %d, and an anchor reports %d", s.Head.Height, s.Told)
	}
	if since := n.behindSince.Load(); since != nil && time.Since(*since) > longBehind {
		return fmt.Errorf("fetching final blocks for %v, at height %d", time.Since(*since).Round(time.Second), s.Head.Height)
	}
	return nil
}

// unheardErr returns why an anchor that signs nothing yet is not ready: writes and reads need the quorum that it has
// not heard.
func unheardErr(s machine.Status) error {
	if s.Unheard <= longUnheard {
		return nil
	}
	return fmt.Errorf("this anchor signs nothing until it has answers of a quorum, and has asked for %v", s.Unheard.Round(time.Second))
}

// lostErr returns why an anchor that lost its record is not ready.
func lostErr(s machine.Status) error {
	switch {
	case !s.Lost:
		return nil
	case s.Rules.Mode == quorum.Crash: // no anchor may lie in that mode, not even by accident
		return fmt.Errorf("this anchor's record is older than ballots that it signed: it signs nothing more in this epoch; "+
			"run it as an observer, without anchor.key, until epoch %d", s.Epoch+1)
	}
	return fmt.Errorf("this anchor's record is older than ballots that it signed: it signs nothing more in this epoch, and signs again with epoch %d", s.Epoch+1)
}
