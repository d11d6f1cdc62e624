package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/lineage"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/node/referral"
	"github.com/aweigh/aweigh/scope"
)

// A name that is on its way to another scope is carried by the nodes of the anchors of the scope that sent it: the
// first of them at once, and each other one only if those before it make no headway. A node asks an anchor of the scope
// that decides about the new name to receive the object. The answer is the proof of what that scope decided, which the
// node brings back.

const (
	// transferTick is how often, at most, a node looks for names that are on their way.
	transferTick = 50 * time.Millisecond
	// transferTurn is how much later the next anchor begins.
	transferTurn = 2 * time.Second
	// transferPause is how long an anchor waits after an attempt that failed.
	transferPause = 200 * time.Millisecond
	// mostTransferPause is how long it waits after several of them.
	mostTransferPause = 10 * time.Second
	// transfersAtOnce bounds the names of a scope that a node carries at a time. Those of a scope that cannot decide
	// stay among them.
	transfersAtOnce = 1000
	// maxTransfersSeen bounds the names whose turn a node knows.
	maxTransfersSeen = 20_000
)

// transfers are the names that a node carries.
type transfers struct {
	mu     sync.Mutex
	since  map[aweigh.Hash]time.Time // by Sent.ID, when this node first saw it
	busy   map[aweigh.Hash]bool      // likewise: carryName runs
	looked map[aweigh.ScopeID]int64  // entries of the lineage of a scope when the node looked last
}

// tendTransfers carries names. It looks after each change, but not all the time.
func (n *Node) tendTransfers(ctx context.Context) {
	for {
		changed := n.Changed()
		waits := false
		for _, p := range n.Replicas() {
			some, err := n.tendTransfersOf(p)
			if err != nil && ctx.Err() == nil {
				p.log.Debug("looking for names on their way", "error", err)
			}
			waits = waits || some
		}
		if !waits {
			select {
			case <-changed:
			case <-ctx.Done():
			}
		}
		if !n.root.pauseFor(ctx, transferTick) {
			return
		}
	}
}

// tendTransfersOf begins to carry names of a scope whose turn it is. It reports whether some wait for their turn.
func (n *Node) tendTransfersOf(p *Replica) (waits bool, err error) {
	if p.vacant.Load() || n.anchor.Load() == nil {
		return false, nil
	}
	t, size := &n.transfers, p.LastHead().LineageSize
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.busy == nil {
		t.busy, t.looked = make(map[aweigh.Hash]bool), make(map[aweigh.ScopeID]int64)
	}
	if t.since == nil || len(t.since) > maxTransfersSeen { // other nodes carried most of them
		t.since = make(map[aweigh.Hash]time.Time)
	}
	if was, ok := t.looked[p.id]; ok && was == size {
		return false, nil
	}
	sent, err := p.sent(transfersAtOnce)
	if err != nil {
		return false, err
	}
	rank := 0
	if len(sent) > 0 {
		if rank = p.seatRank(); rank < 0 {
			return false, nil
		}
	}
	for i := range sent {
		s := sent[i]
		if _, seen := t.since[s.ID]; !seen {
			t.since[s.ID] = time.Now()
		}
		switch {
		case t.busy[s.ID]:
		case time.Since(t.since[s.ID]) < time.Duration(rank)*transferTurn:
			waits = true
		default:
			t.busy[s.ID] = n.spawn("carrying a name to another scope", func(ctx context.Context) { n.carryName(ctx, p, s) })
		}
	}
	if !waits {
		t.looked[p.id] = size
	}
	return waits, nil
}

// done forgets a name that is not on its way any more, or is tried again by the next look.
func (t *transfers) done(p *Replica, id aweigh.Hash, gone bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.busy, id)
	delete(t.looked, p.id)
	if gone {
		delete(t.since, id)
	}
}

// sent returns names of the scope that are on their way, by this node's state.
func (n *Replica) sent(most int) (all []scope.Sent, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), n.of.cfg.Timeout)
	defer cancel()
	v, err := n.Read(ctx, false)
	if err != nil {
		return nil, err
	}
	all, err = v.Sent(most)
	return all, errors.Join(err, v.Close())
}

// carryName carries a name until the scope has let it go, or keeps it.
func (n *Node) carryName(ctx context.Context, p *Replica, sent scope.Sent) {
	gone := false
	defer func() { n.transfers.done(p, sent.ID, gone) }()
	for pause := transferPause; ctx.Err() == nil && !p.closed(); pause = min(2*pause, mostTransferPause) {
		all, err := p.sentAt(ctx, sent.Key)
		if err == nil && !slices.ContainsFunc(all, func(s scope.Sent) bool { return s.ID == sent.ID }) {
			gone = true
			return
		}
		if err == nil {
			err = n.carryNext(ctx, p, &sent)
		}
		if err == nil {
			continue
		}
		p.log.Debug("a name is still on its way", "key", string(sent.Key), "to", string(sent.To), "error", err)
		if !p.pauseFor(ctx, pause) {
			return
		}
	}
}

// sentAt returns what is on its way under a key, by this node's state.
func (n *Replica) sentAt(ctx context.Context, key []byte) (all []scope.Sent, err error) {
	v, err := n.Read(ctx, false)
	if err != nil {
		return nil, err
	}
	is, ok, err := v.SentAt(key)
	if ok {
		all = append(all, is)
	}
	return all, errors.Join(err, v.Close())
}

// carryNext lets the other scope decide, and brings the decision.
func (n *Node) carryNext(ctx context.Context, p *Replica, sent *scope.Sent) error {
	ctx, cancel := context.WithTimeout(ctx, n.cfg.Timeout)
	defer cancel()
	proof, err := n.decisionOn(ctx, p, sent)
	if err != nil {
		return err
	}
	return p.carry(ctx, scope.Carrying{Key: sent.Key, Proof: *proof})
}

// carry hands in a proof in the name of this node's anchor.
func (n *Replica) carry(ctx context.Context, c scope.Carrying) error {
	m := n.mutation(scope.Carry, canon.Encode(c), n.filled(Once{Justification: "a name moves to another scope"}))
	s := &submission{ctx: ctx, mutation: m, alone: true, done: make(chan machine.Reply, 1)}
	r, err := n.attempt(ctx, s)
	if err == nil && r.Code != scope.Applied {
		err = scope.Failure(r.Reason) // another node was first, or it is for another scope
	}
	return err
}

// decisionOn returns the proof of what the scope that decides about the new name of what was sent has decided.
func (n *Node) decisionOn(ctx context.Context, p *Replica, sent *scope.Sent) (decided *scope.TransferProof, err error) {
	var proof *scope.TransferProof
	err = p.coveredFrom(ctx, false, func(v *View) error {
		proof, err = p.prover(ctx, v).Sent(sent)
		return err
	})
	if err != nil {
		return nil, err
	}
	err = n.withOwner(ctx, referral.Keys(sent.To), func(at owner) error {
		decided, err = at.receive(ctx, proof)
		return err
	})
	return decided, err
}

// receive lets the scope decide about what another one sent, and returns the proof of that.
func (d owner) receive(ctx context.Context, sent *scope.TransferProof) (*scope.TransferProof, error) {
	if d.remote != nil {
		return d.remote.receive(ctx, sent)
	}
	n := d.replica
	if is, ok, err := n.received(ctx, sent); ok || err != nil {
		return n.decided(ctx, is, err)
	}
	if n.seatRank() >= 0 {
		return n.receive(ctx, sent)
	}
	return n.askToReceive(ctx, sent)
}

// answers reports why a proof is not of a decision about what was sent.
func answers(decided, sent *scope.TransferProof, network aweigh.NetworkID) error {
	e := &decided.Entry.Entry
	if e.Class == lineage.Sent || e.Prior != sent.Entry.Entry.Hash() {
		return fmt.Errorf("%w: of another decision", scope.ErrProof)
	}
	return decided.Verify(network)
}

// receive asks the anchors of the scope.
func (f *remoteScope) receive(ctx context.Context, sent *scope.TransferProof) (decided *scope.TransferProof, err error) {
	_, err = f.ask(ctx, referral.Question{Kind: referral.AskReceive, Newest: true, Body: sent.Encode()}, func(body []byte) error {
		got, err := scope.DecodeTransferProof(body)
		if err == nil {
			err = answers(got, sent, f.genesis.Network())
		}
		if err == nil {
			decided = got
		}
		return err
	})
	return decided, err
}

// askToReceive asks the anchors of a scope in which this node has no seat, one after another.
func (n *Replica) askToReceive(ctx context.Context, sent *scope.TransferProof) (*scope.TransferProof, error) {
	ask := referral.Question{Kind: referral.AskReceive, Newest: true, Body: sent.Encode()}
	req := slices.Concat(n.address, []byte(askForeign), canon.Encode(ask))
	why := ErrNoAnchor
	for _, a := range n.epochs.epoch().Roster.Anchors {
		id, err := n.of.called.id(machine.Peer(a.Peer))
		if err != nil {
			continue
		}
		raw, err := n.of.host.Request(ctx, id, req, scope.MaxProofBytes)
		var got referral.Answer
		var decided *scope.TransferProof
		if err == nil {
			err = canon.Decode(raw, &got)
		}
		if err == nil && got.Failure != "" {
			err = scope.Failure(got.Failure)
		}
		if err == nil {
			decided, err = scope.DecodeTransferProof(got.Body)
		}
		if err == nil {
			err = answers(decided, sent, n.genesis.Network())
		}
		if err == nil {
			return decided, nil
		}
		why = err
	}
	return nil, why
}

// received returns what was decided about what was sent, by this node's state.
func (n *Replica) received(ctx context.Context, sent *scope.TransferProof) (is scope.Received, ok bool, err error) {
	v, err := n.Read(ctx, false)
	if err != nil {
		return is, false, err
	}
	is, ok, err = v.Received(sent.To, sent.Entry.Entry.Hash())
	return is, ok, errors.Join(err, v.Close())
}

// decided proves a decision, which may be of a scope that had the key before.
func (n *Replica) decided(ctx context.Context, is scope.Received, err error) (proof *scope.TransferProof, _ error) {
	if err != nil {
		return nil, err
	}
	p := n
	if is.Scope != n.id {
		if p, err = n.of.archive(is.Scope); err != nil || p == nil {
			return nil, errors.Join(err, fmt.Errorf("%w: %s, which decided about the name", ErrNoScope, is.Scope.Short()))
		}
	}
	err = p.coveredFrom(ctx, false, func(v *View) error {
		proof, err = p.prover(ctx, v).Decided(is.Entry)
		return err
	})
	return proof, err
}

// mayDecide returns an error unless the scope has to decide about what was sent, and the proof holds: this node's
// anchor brings in no other.
func (n *Replica) mayDecide(ctx context.Context, sent *scope.TransferProof) error {
	v, err := n.Read(ctx, false)
	if err != nil {
		return err
	}
	if err := errors.Join(v.owns(referral.Keys(sent.To)), v.Close()); err != nil {
		return err
	}
	if err := sent.Brief(n.Limits()); err != nil {
		return err
	}
	return sent.Verify(n.genesis.Network())
}

// receive decides as this node's anchor, with the others, about what another scope sent, unless that is done.
func (n *Replica) receive(ctx context.Context, sent *scope.TransferProof) (*scope.TransferProof, error) {
	if sent == nil || sent.Kv == nil || sent.Entry.Entry.Class != lineage.Sent {
		return nil, fmt.Errorf("%w: nothing that was sent", scope.ErrProof)
	}
	is, ok, err := n.received(ctx, sent)
	if !ok && err == nil {
		if err := n.mayDecide(ctx, sent); err != nil {
			return nil, err
		}
		why := n.carry(ctx, scope.Carrying{Proof: *sent})
		if is, ok, err = n.received(ctx, sent); !ok && err == nil { // otherwise another node was first
			err = cmp.Or(why, scope.ErrElsewhere)
		}
	}
	return n.decided(ctx, is, err)
}

// excludesAsker is excludes for a question about no key. An anchor of a scope that sent a name here hears of that.
func (n *Replica) excludesAsker(p machine.Peer, q *inquiry) error {
	err := n.excludes(p, false)
	if q.Kind == referral.AskReceive && errors.Is(err, scope.ErrNoReader) && n.sends(p, q.sent) {
		return nil
	}
	return err
}

// foreignSignature is what it takes to verify a signature, in µs.
const foreignSignature = 50

// chargeProof takes what a block and the signatures of a proof cost from the budget of a peer, before they are
// verified: by excludesAsker, by mayDecide, and in the bundle that brings them in. A proof that no block would take is
// dropped.
func (n *Replica) chargeProof(ctx context.Context, p machine.Peer, q *inquiry) error {
	if q.sent == nil || q.sent.Brief(n.Limits()) != nil {
		q.sent = nil
		return nil
	}
	return n.charge(ctx, p, foreignBlock+3*foreignSignature*q.sent.Signatures(), 0)
}

// sends reports whether a peer that may not read the scope brings what its own scope sent. It hears what was decided.
func (n *Replica) sends(p machine.Peer, sent *scope.TransferProof) bool {
	if may, err := n.withinNow(p); !may || err != nil || sent == nil {
		return false
	}
	by, err := sent.By(n.genesis.Network())
	return err == nil && slices.ContainsFunc(by.Anchors, func(a scope.Anchor) bool { return machine.Peer(a.Peer) == p })
}

// receiveForeign is receive for a node of another scope.
func (n *Replica) receiveForeign(ctx context.Context, sent *scope.TransferProof, a *referral.Answer) ([]byte, error) {
	decided, err := n.receive(ctx, sent)
	if err != nil {
		return nil, err
	}
	h := n.LastHead()
	a.Said(&h)
	return decided.Encode(), nil
}
