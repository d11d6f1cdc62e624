package node

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/lineage"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/node/referral"
	"github.com/aweigh/aweigh/scope"
)

// ErrOnItsWay is wrapped where an object was sent to another scope that has not decided yet, or of which this node does
// not know whether it has.
var ErrOnItsWay = errors.New("node: the alias is on its way to another scope")

const (
	// transferWithin is how long after a request the other scope can receive what was sent.
	transferWithin = 10 * time.Minute
	// fateEvery is how often a node asks whether a scope that it does not hold let a name go.
	fateEvery = 200 * time.Millisecond
	// fateEntries bounds the entries among which a node looks for what became of a name.
	fateEntries = 10_000
)

// transfer sends what a key names to the scope that decides about another key, and waits for the decision. The receipt
// is that of the sending, or says why the object stays. Errors wrap ErrOnItsWay if the request ends first.
func (n *Node) transfer(ctx context.Context, c scope.Naming, once Once) (r machine.Receipt, err error) {
	ctx, cancel := n.root.deadline(ctx)
	defer cancel()
	if c.Object.IsZero() { // the author signs which object it is
		res, _, err := n.Range(ctx, c.Key, nil, scope.Range{KeysOnly: true}, true)
		if err != nil {
			return r, err
		}
		if len(res.Kvs) == 0 {
			return r, scope.ErrUnnamed
		}
		c.Object = res.Kvs[0].UID
	}
	from := once.ValidUntil
	if from == 0 {
		from = n.root.time()
	}
	send := scope.Naming{Kind: scope.Send, Object: c.Object, Key: c.Key, To: c.To, Until: from.Add(transferWithin)}
	r, err = n.route(ctx, referral.Keys(c.Key), scope.Name, canon.Encode(send), once, nil)
	if err != nil || r.Code != scope.Applied && r.Code != scope.Duplicate {
		return r, err
	}
	by, err := n.governs(ctx, c.Key, nil)
	if err != nil {
		return r, err
	}
	why := ""
	if by.remote != nil {
		err = by.remote.awaitGone(ctx, &send, r.Revision)
	} else {
		why, err = by.replica.awaitFate(ctx, &send)
	}
	if r.Sent = err == nil && why == ""; why != "" {
		r.Code, r.Reason = scope.Failed, why
	}
	return r, err
}

// onItsWay is the error where a request ends before a decision.
func onItsWay(c *scope.Naming) error {
	return fmt.Errorf(
		"%w: it was sent as %q, and nothing is decided yet; until then it can be read, and does not change; after %s, a deletion gives it up",
		ErrOnItsWay, c.To, c.Until.Time().Format(time.RFC3339),
	)
}

// awaitFate waits until the scope lets go what was sent, or keeps it. why is the reason if it stays.
func (n *Replica) awaitFate(ctx context.Context, c *scope.Naming) (why string, err error) {
	for {
		changed := n.of.Changed()
		all, err := n.sentAt(ctx, c.Key)
		if err != nil {
			return "", err
		}
		if len(all) == 0 || !bytes.Equal(all[0].To, c.To) {
			return n.fateOf(ctx, c.Key)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return "", onItsWay(c)
		case <-n.runner.replies.done:
			return "", n.runner.replies.stopped
		}
	}
}

// fateOf is why what a key named stayed; "" if it went, or if that was long ago.
func (n *Replica) fateOf(ctx context.Context, key []byte) (why string, err error) {
	v, err := n.Read(ctx, false)
	if err != nil {
		return "", err
	}
	log, size := v.Lineage(), v.Head().LineageSize
	for i := size - 1; i >= max(0, size-fateEntries); i-- {
		e, _, err := log.Entry(i)
		if err != nil {
			return "", errors.Join(err, v.Close())
		}
		switch {
		case !bytes.Equal(e.Key, key):
		case e.Class == lineage.Kept:
			return e.Reason, v.Close()
		case e.Class == lineage.Left && scope.GivenUp(e.Reason):
			return e.Reason, v.Close()
		case e.Class == lineage.Left:
			return "", v.Close()
		}
	}
	return "", v.Close()
}

// awaitGone waits until the scope lets go what was sent, after a revision.
func (f *remoteScope) awaitGone(ctx context.Context, c *scope.Naming, sent int64) error {
	for {
		res, _, err := f.rangeAsked(ctx, c.Key, nil, scope.Range{}, true)
		switch {
		case ctx.Err() != nil:
			return onItsWay(c)
		case err == nil && (len(res.Kvs) == 0 || c.Object != (aweigh.UID{}) && res.Kvs[0].UID != c.Object || res.Kvs[0].CreateRevision > sent):
			return nil
		case err != nil:
			return err
		}
		if !f.of.root.pauseFor(ctx, fateEvery) {
			return onItsWay(c)
		}
	}
}
