package node

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sort"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/lineage"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/scope"
)

// Tail states which part of a scope's lineage is wanted.
type Tail struct {
	Revision int64  // the first entry of this revision, or of a later one; 0: Index
	Index    int64  // the first entry
	Prefix   []byte // of the keys whose entries are shown
	Follow   bool   // go on with what becomes final later
}

// TailPage is the next entries of a lineage.
type TailPage struct {
	Head  scope.Head
	Items []TailItem
	Next  int64 // index of the entry after them
}

// TailItem is an entry, or a run of entries that are not shown.
type TailItem struct {
	LineageEntry
	Final  *scope.Finality // of the block, if the entry before is of another one, and this node has it
	To     int64           // of a run: the index after its last entry; 0: an entry
	Hashes []aweigh.Hash   // of a run: those of lineage.Log.Cover
}

// Bounds of one page.
const (
	tailEntries = 512       // that are looked at
	tailBytes   = 256 << 10 // of the entries, and of what makes their blocks final; one entry may have more
)

// Tail delivers the entries of the scope's lineage in order, after a run of those before: all that were final at the
// call, then with t.Follow those that become final later. A page is read only when the one before was delivered. The
// entries hold digests, and no values. A node that caught up by a snapshot has no blocks from before: for their entries
// the error wraps machine.ErrNoBlock and states the entry from which on Tail can begin. It returns the error of
// deliver, ErrStopped, or the reason why ctx ended.
func (n *Replica) Tail(ctx context.Context, t Tail, deliver func(TailPage) error) error {
	r := tailing{Replica: n, want: t, at: t.Index, names: n.namesThen()}
	for first := true; ; first = false {
		changed := n.Changed() // before reading, so that nothing falls in between
		p, more, err := r.page(ctx, first)
		if err == nil && (first || len(p.Items) > 0) {
			err = deliver(p)
		}
		if err != nil {
			return err
		}
		if more {
			continue
		}
		if !t.Follow {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		case <-n.runner.replies.done:
			return n.runner.replies.stopped
		}
	}
}

// tailing is a Tail that goes on.
type tailing struct {
	*Replica
	want  Tail
	at    int64 // index of the next entry
	begun int64 // index of the first entry; those before it are a run of their own
	until int64 // the size of the lineage that is wanted without Follow

	block aweigh.Height // of the entry that was shown last
	place machine.BlockStub

	names *namesThen
}

// page reads the next page. more reports whether another can be read at once.
func (r *tailing) page(ctx context.Context, first bool) (p TailPage, more bool, err error) {
	v, err := r.Read(ctx, first)
	if err != nil {
		return p, false, err
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	log := v.State.Lineage()
	p.Head = v.Head()
	if first {
		if err := r.begin(log); err != nil {
			return p, false, err
		}
		if r.begun = r.at; r.begun > 0 {
			p.Items = append(p.Items, TailItem{To: r.begun})
		}
	}
	end := p.Head.LineageSize
	if !r.want.Follow {
		end = r.until
	}
	for looked, size := 0, 0; r.at < end && looked < tailEntries && size < tailBytes && ctx.Err() == nil; looked++ {
		e, ok, err := log.Entry(r.at)
		if err != nil || !ok {
			return p, false, errors.Join(err, fmt.Errorf("node: entry %d of the lineage is missing", r.at))
		}
		if !bytes.HasPrefix(e.Key, r.want.Prefix) {
			r.hide(&p)
			continue
		}
		x := TailItem{LineageEntry: LineageEntry{Entry: e, Index: r.at}}
		if err := r.locate(log, &x); err != nil {
			return p, false, err
		}
		if err := r.names.of(v, &x.LineageEntry); err != nil {
			return p, false, err
		}
		if size += len(e.Key) + len(e.Justification) + len(e.Caller) + len(e.Reason) + 512; x.Final != nil {
			size += 512 * (1 + len(x.Final.Descendants)) // a header each
			size += 128 * len(x.Final.Certificate.Signatures)
		}
		p.Items = append(p.Items, x)
		r.at++
	}
	for i := range p.Items {
		if x := &p.Items[i]; x.To > 0 {
			if x.Hashes, err = log.Cover(x.Index, x.To); err != nil {
				return p, false, err
			}
		}
	}
	p.Next = r.at
	return p, r.at < end, ctx.Err()
}

// begin finds the first entry.
func (r *tailing) begin(log *lineage.Log) error {
	r.until = log.Size()
	if r.want.Revision > 0 {
		at, err := r.search(log, func(e *lineage.Entry) bool { return r.revisionOf(e) >= r.want.Revision })
		if err != nil {
			return err
		}
		r.at = at
	}
	if r.at > log.Size() {
		return fmt.Errorf("%w: entry %d of a history of %d entries", scope.ErrFutureRevision, r.at, log.Size())
	}
	return nil
}

// search finds the first entry that is late, as all after it are.
func (r *tailing) search(log *lineage.Log, late func(*lineage.Entry) bool) (int64, error) {
	var bad error
	at := sort.Search(int(log.Size()), func(i int) bool {
		e, _, err := log.Entry(int64(i))
		bad = errors.Join(bad, err)
		return err != nil || late(&e)
	})
	return int64(at), bad
}

// revisionOf is the revision of the scope after an entry. Entries of what the scope took over as it was founded have
// the revisions of the scope above.
func (r *tailing) revisionOf(e *lineage.Entry) int64 {
	if d := r.genesis.Descent; e.Height == 0 && d != nil {
		return d.Revision
	}
	return e.Revision
}

// hide puts the next entry into a run of those that are not shown.
func (r *tailing) hide(p *TailPage) {
	n := len(p.Items)
	if n == 0 || p.Items[n-1].To <= r.begun {
		p.Items = append(p.Items, TailItem{LineageEntry: LineageEntry{Index: r.at}})
		n++
	}
	r.at++
	p.Items[n-1].To = r.at
}

// locate finds the block of an entry.
func (r *tailing) locate(log *lineage.Log, x *TailItem) (err error) {
	if x.Height == 0 { // taken over, as the scope was founded
		x.Block, x.Time = r.id, r.genesis.Time
		return nil
	}
	if x.Height != r.block {
		if r.place, err = r.History().Stub(x.Height); err != nil {
			return r.apart(log, x.Height, err)
		}
		f, err := r.History().Finality(x.Height)
		if err == nil {
			x.Final = &f
		} else if !errors.Is(err, machine.ErrNoBlock) {
			return err
		}
		r.block = x.Height
	}
	x.Block, x.Time = r.place.Block, r.place.Time
	return nil
}

// apart is err for an entry whose block is missing, with the entry from which on this node has the blocks.
func (r *tailing) apart(log *lineage.Log, missing aweigh.Height, err error) error {
	kept, markErr := r.History().Mark(machine.KeyOldest(r.id))
	if markErr != nil || kept <= missing {
		return errors.Join(err, markErr)
	}
	at, searchErr := r.search(log, func(e *lineage.Entry) bool { return e.Height >= kept })
	if searchErr != nil {
		return errors.Join(err, searchErr)
	}
	return fmt.Errorf("%w: %w; this node can begin with entry %d (--since @%d)", ErrNotHeld, err, at, at)
}
