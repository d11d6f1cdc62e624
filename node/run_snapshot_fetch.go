package node

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/p2p"
	"github.com/aweigh/aweigh/scope"
)

// SnapshotProgress is how far a snapshot has been fetched.
type SnapshotProgress struct {
	Height aweigh.Height
	Peer   Peer
	Parts  uint64 // that are here
	Bytes  uint64 // of them
}

// snapshotTries is how often a part is asked for before its peer is given up.
const snapshotTries = 10

// catchUpBySnapshot looks whether this node is too far behind to fetch blocks,
// and then fetches a snapshot. It also lets go of the one that it offers.
func (n *Node) catchUpBySnapshot(ctx context.Context) {
	tick := time.NewTicker(n.cfg.snapshotEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if n.shelf.stale(keepSnapshot) {
			n.shelf.put(nil, 0, nil)
		}
		if err := n.fetchSnapshot(ctx); err != nil && ctx.Err() == nil {
			n.log.Warn("catching up by snapshot failed; another peer is tried", "error", err)
		}
		n.fetching.Store(nil)
	}
}

// fetchSnapshot goes on with the snapshot that was begun, or begins one if need be.
func (n *Node) fetchSnapshot(ctx context.Context) error {
	s := n.Status()
	job, begun, err := storedJob(n.cfg.Store, n.id)
	if err != nil {
		return err
	}
	if !s.Far && !begun {
		return nil
	}
	if !begun {
		if job, err = n.beginSnapshot(ctx, s.Head.Height); err != nil {
			return err
		}
	}
	id, err := peer.Decode(job.Peer)
	if err != nil {
		return errors.Join(err, dropJob(n.cfg.Store, n.id))
	}
	err = n.finishSnapshot(ctx, id, &job)
	if err == nil || ctx.Err() != nil || errors.Is(err, ErrStopped) {
		return err
	}
	n.excluded[id] = true
	if errors.Is(err, ErrSnapshot) {
		n.snapshotLies.Add(1)
		n.host.Blame(id)
	}
	return errors.Join(fmt.Errorf("peer %s: %w", id, err), dropJob(n.cfg.Store, n.id))
}

// beginSnapshot asks peers for an offer until one has what is needed.
func (n *Node) beginSnapshot(ctx context.Context, have aweigh.Height) (job snapshotJob, err error) {
	peers := n.host.Peers()
	rand.Shuffle(len(peers), func(i, j int) { peers[i], peers[j] = peers[j], peers[i] })
	err = errors.New("no peer is left to ask")
	for _, p := range peers {
		if n.excluded[p.ID] {
			continue
		}
		var raw []byte
		if raw, err = n.host.Request(ctx, p.ID, append([]byte(askSnapshot), canon.Encode(snapshotAsk{Have: have})...), maxPart); err != nil {
			continue
		}
		job = snapshotJob{Peer: p.ID.String()}
		var b *scope.Block
		if err = canon.Decode(raw, &job.Offer); err == nil {
			b, err = job.Offer.check(n.roll.checker())
		}
		if err == nil && b.Header.Height <= have {
			err = fmt.Errorf("%w: of height %d, where %d is here", ErrSnapshot, b.Header.Height, have)
		}
		if err != nil {
			n.excluded[p.ID] = true
			n.host.Blame(p.ID)
			continue
		}
		if err = dropParts(n.cfg.Store, n.id); err == nil {
			err = n.cfg.Store.Commit([]kv.Op{kv.Set(keyJob(n.id), canon.Encode(job))}, true)
		}
		return job, err
	}
	clear(n.excluded) // next time all are asked again
	select {
	case n.runner.events <- Stepwise{}:
	case <-n.runner.replies.done:
	case <-ctx.Done():
	}
	return job, err
}

// finishSnapshot fetches what is missing of a snapshot, and has it installed.
func (n *Node) finishSnapshot(ctx context.Context, from peer.ID, job *snapshotJob) error {
	b, err := scope.DecodeBlock(job.Offer.Block, n.roll.checker().Limits, nil)
	if err != nil {
		return err
	}
	at := b.Header.Height
	n.log.Info("catching up by snapshot", "height", at, "peer", from, "parts", job.Parts)
	nothing := func([]kv.Op) error { return nil }
	in, err := job.replay(n.cfg.Store, b, nothing)
	if err != nil {
		return err
	}
	for !job.Whole {
		n.fetching.Store(&SnapshotProgress{Height: at, Peer: Peer(job.Peer), Parts: job.Parts, Bytes: job.Bytes})
		raw, err := n.fetchPart(ctx, from, partAsk{Height: at, After: job.After})
		if err != nil {
			return err
		}
		var p snapshotPart
		if err := canon.Decode(raw, &p); err != nil {
			return fmt.Errorf("%w: %w", ErrSnapshot, err)
		}
		if err := p.take(in, nothing); err != nil {
			return err
		}
		part := kv.Set(keyPart(n.id, job.Parts), raw)
		job.Parts, job.Bytes, job.Whole = job.Parts+1, job.Bytes+uint64(len(raw)), !p.More
		job.After = p.Records[len(p.Records)-1].Key
		if err := n.cfg.Store.Commit([]kv.Op{part, kv.Set(keyJob(n.id), canon.Encode(job))}, false); err != nil {
			return err
		}
		n.snapshotParts.Add(1)
	}
	if _, err := in.Finish(); err != nil {
		return fmt.Errorf("%w: %w", ErrSnapshot, err)
	}
	return n.runner.install(ctx, at)
}

// fetchPart asks until the peer answers, or refuses.
func (n *Node) fetchPart(ctx context.Context, from peer.ID, ask partAsk) (raw []byte, err error) {
	for range snapshotTries {
		raw, err = n.host.Request(ctx, from, append([]byte(askPart), canon.Encode(ask)...), maxPart)
		if err == nil || errors.Is(err, p2p.ErrRefused) || ctx.Err() != nil || !n.pause(time.Second) {
			return raw, err
		}
	}
	return nil, err
}

// installing asks a runner to replace its state and its machine.
type installing struct {
	above aweigh.Height // the snapshot's: with a head as high it is not needed
	done  chan error
}

// install has the fetched snapshot installed, between two steps.
func (r *runner) install(ctx context.Context, at aweigh.Height) error {
	in := installing{above: at, done: make(chan error, 1)}
	select {
	case r.installs <- in:
	case <-ctx.Done():
		return ctx.Err()
	case <-r.replies.done:
		return ErrStopped
	}
	select {
	case err := <-in.done:
		return err
	case <-r.replies.done:
		return ErrStopped
	}
}

// replace installs a snapshot and starts a new machine on it. What waited in the
// old one is undecided for those who asked. The events tell the new one who is in
// reach, so that it asks for news.
func (r *runner) replace(in installing) (links []Event, err error) {
	id := r.machine.id
	if r.machine.chain.state.Height() >= in.above {
		err := dropJob(r.store, id)
		in.done <- err
		return nil, err
	}
	old := r.machine
	err = install(r.store, id)
	if err == nil {
		cfg := r.machine.cfg
		cfg.Life, cfg.Awaited = rand.Uint64(), 0
		r.machine, err = NewMachine(cfg, r.store)
	}
	if err != nil {
		return nil, fmt.Errorf("node: a snapshot could not be installed, start the node again: %w", err)
	}
	status := r.machine.Status()
	r.status.Store(&status)
	r.notes(Installed{Height: status.Head.Height})
	in.done <- nil
	for _, p := range old.peers {
		if old.away[p] {
			links = append(links, Parted{Peer: p})
		} else {
			links = append(links, Met{Peer: p})
		}
	}
	return links, nil
}
