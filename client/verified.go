package client

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/aweigh/aweigh"
	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/api/aweigh/v1/aweighv1connect"
	"github.com/aweigh/aweigh/scope"
)

// Verified reads keys and believes no node: each answer carries its proof, which is checked from the network's identity
// alone. An answer that does not hold, that is too old, or that goes back behind an earlier one is refused, and the
// next node is asked. Safe for concurrent use.
type Verified struct {
	// Refused hears of each answer that does not hold, unless it is only too old, with the address of the node that
	// gave it. It may be nil, and is set before the first read.
	Refused func(node string, err error)

	client *Client
	check  func(*scope.RangeProof) error

	mu     sync.Mutex
	reader *scope.RangeReader
}

// Verified returns a reader for a network. It refuses what was the newest longer ago than atMost, by the clock here; 0
// permits any age. Each proof that holds is also given to check, which may refuse it; check may be nil.
func (c *Client) Verified(network aweigh.NetworkID, atMost time.Duration, check func(*scope.RangeProof) error) *Verified {
	return &Verified{client: c, check: check, reader: scope.NewRangeReader(network, atMost)}
}

// ErrAged means that a proof holds, of what was the newest too long ago.
var ErrAged = scope.ErrAged

// Range reads the keys [key, end), in the sense of scope.Op. It asks one node after the other until an answer holds,
// whatever the others say, and gives each but the last half of the time that ctx leaves. If none holds, the error joins
// what came of each node; it wraps scope.ErrProof if the answer of one does not hold.
func (v *Verified) Range(ctx context.Context, key, end []byte) (p *scope.RangeProof, r scope.RangeReport, err error) {
	return v.RangeAt(ctx, key, end, 0)
}

// RangeAt is Range as of an earlier block, of any age, of the scope that the Client is In, which governed the whole
// range then; 0 is the newest of all scopes. Only a node that holds the scope and has kept what the keys held then
// gives such an answer.
func (v *Verified) RangeAt(ctx context.Context, key, end []byte, at aweigh.Height) (p *scope.RangeProof, r scope.RangeReport, err error) {
	var failed []refusal // of the nodes asked so far
	left := len(v.client.endpoints)
	v.client.order(ctx, func(e *endpoint) bool {
		share, cancel := shareOf(ctx, left)
		defer cancel()
		left--
		if p, r, err = v.ask(share, e, key, end, at); err == nil {
			return true
		}
		failed = append(failed, refusal{e.address, err})
		if v.Refused != nil && errors.Is(err, scope.ErrProof) && !errors.Is(err, ErrAged) {
			v.Refused(e.address, err)
		}
		return false
	})
	if err != nil {
		return nil, scope.RangeReport{}, joined(failed)
	}
	return p, r, nil
}

// refusal is why a node gave no answer that holds.
type refusal struct {
	node string
	err  error
}

// joined is one error of all refusals: with the node for each, or once if all are the same.
func joined(all []refusal) error {
	var each []error
	same := len(all) > 1
	for i := range all {
		each = append(each, fmt.Errorf("%s: %w", all[i].node, all[i].err))
		same = same && all[i].err.Error() == all[0].err.Error()
	}
	if same {
		return fmt.Errorf("all %d nodes: %w", len(all), all[0].err)
	}
	return errors.Join(each...)
}

// shareOf is the context of the next of so many requests in turn.
func shareOf(ctx context.Context, left int) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok || left < 2 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, time.Until(deadline)/2)
}

// ask asks one node.
func (v *Verified) ask(ctx context.Context, e *endpoint, key, end []byte, at aweigh.Height) (*scope.RangeProof, scope.RangeReport, error) {
	ask := method[aweighv1.ProveRangeRequest, aweighv1.ProveRangeResponse](aweighv1connect.NodeClient.ProveRange)
	v.mu.Lock()
	q := v.reader.Ask(key, end)
	q.At, q.In = at, v.client.in
	v.mu.Unlock()
	resp, err := ask.at(ctx, e, &aweighv1.ProveRangeRequest{Key: key, RangeEnd: end, Height: uint64(at)})
	if err != nil {
		return nil, scope.RangeReport{}, err
	}
	return v.holds(resp.Proof, q)
}

// Get reads one key. The error wraps ErrNotFound if it is absent, which the proof shows.
func (v *Verified) Get(ctx context.Context, key []byte) (scope.KeyValue, error) {
	_, r, err := v.Range(ctx, key, nil)
	if err != nil {
		return scope.KeyValue{}, err
	}
	if len(r.Kvs) == 0 {
		return scope.KeyValue{}, fmt.Errorf("%w: %q", ErrNotFound, key)
	}
	return r.Kvs[0], nil
}

// holds checks an answer to a question. Errors wrap scope.ErrProof, or are those of check.
func (v *Verified) holds(raw []byte, q *scope.RangeQuestion) (*scope.RangeProof, scope.RangeReport, error) {
	p, r, err := q.Open(raw, aweigh.InstantOf(time.Now()))
	if err == nil && v.check != nil {
		err = v.check(p)
	}
	if err != nil {
		return nil, r, err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	return p, r, v.reader.Take(q, &r)
}
