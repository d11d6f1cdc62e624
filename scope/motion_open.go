package scope

import (
	"errors"
	"fmt"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/lineage"
	"github.com/aweigh/aweigh/votes"
)

// Found is what one put or deletion of a motion found when that opened: how many
// keys, and the newest revision among them. If anything was changed since, one of
// the two differs, or a deletion shows it.
type Found struct {
	_      struct{} `cbor:",toarray"`
	Keys   int64
	Newest int64
	TTL    int64       // of the lease that a put names, in seconds
	Keeper aweigh.Hash // of that lease: the author of the request that granted it
}

// opening is what else is known of a motion that opens.
type opening struct {
	line      indexedMotion
	chose     bool            // the branch of a transaction
	basis     []Found         // what it found
	impact    *Impact         // what it would change
	displaced *votes.MotionID // gives way to it, nil: none does
}

// propose opens a motion for the transaction being executed.
func (x *execution) propose(m *CheckedMutation, a *Approval, p *plan) (failure, err error) {
	if len(p.inner) > 0 { // their branches could be others when it is carried
		return errors.New("scope: the policy asks for approval, and voters could not tell what transactions within a transaction would do; send it without"), nil
	}
	basis, err := x.basis(p)
	var impact *Impact
	if err == nil {
		impact, failure, err = x.impactOfPlan(m, p)
	}
	if err == nil && failure == nil {
		failure = a.Permits(impact)
	}
	if failure != nil || err != nil {
		return failure, err
	}
	return x.openMotion(m, a, opening{
		line: indexedMotion{Author: m.Principal(), Signer: m.Author, Caller: m.Caller}, chose: p.succeeded, basis: basis, impact: impact,
	})
}

// openMotion opens a motion for the mutation being executed (P28); failure is the
// reason if it cannot.
func (x *execution) openMotion(m *CheckedMutation, a *Approval, o opening) (failure, err error) {
	h, r := &x.block.Header, x.epoch.Roster
	mo := Motion{
		Mutation: m.raw, Height: h.Height, Opened: h.Time, Epoch: h.Epoch, Entry: x.nextEntry(),
		Revision: x.next.head.Revision, Deadline: h.Time.Add(a.Window),
		Policy: h.Policy, Approval: *a, Success: o.chose, Basis: o.basis, Impact: o.impact,
	}
	if mo.Void, err = x.voidOf(a); err != nil {
		return nil, err
	}
	readmits := m.Decision != nil && m.Decision.ofApprover()
	if mo.Voters, mo.Rule, failure = a.electors(r, m.askers(r), mo.Void, readmits); failure != nil {
		return failure, nil
	}
	if o.displaced != nil { // nothing refuses a decision from here on
		if err := x.closeFor(*o.displaced); err != nil {
			return nil, err
		}
		mo.Entry = x.nextEntry() // its end is in the lineage before this one
	}
	record := (&motionRecord{Motion: mo}).encode()
	var names []string
	if a.ofKeys() { // decisions have bounds of their own, so that motions on keys cannot exclude them
		if names, failure = x.countedFor(openMotions); failure != nil {
			return failure, nil
		}
		o.line.Bytes = int64(len(record))
		given, failure, err := x.motionRoom(o.line)
		if failure != nil || err != nil {
			return failure, err
		}
		if given { // which is in the lineage before this one
			mo.Entry = x.nextEntry()
			record = (&motionRecord{Motion: mo}).encode()
			o.line.Bytes = int64(len(record))
		}
	}
	x.enter(lineage.Entry{Class: lineage.Opened, Posterior: mo.Hash()})
	x.setRecord(x.space.motion(m.ID), record)
	d := &x.next.head.Docket
	d.Open++
	d.Bytes += o.line.Bytes
	x.setRecord(x.space.motionIndexKey(atOpen, mo.Deadline, m.ID), canon.Encode(o.line))
	d.Next = aweigh.Earliest(d.Next, mo.Deadline)
	x.result.Motions = append(x.result.Motions, m.ID)
	return nil, x.charge(x.space.chargeOfMotion(m.ID), openMotions, charge{Entries: names, Amount: 1})
}

// basis is what the puts and deletions of a planned transaction find, in order.
func (x *execution) basis(p *plan) (all []Found, err error) {
	for _, op := range p.writes() {
		f, err := x.finds(op)
		if err != nil {
			return nil, err
		}
		all = append(all, f)
	}
	return all, nil
}

func (x *execution) finds(op *Op) (t Found, err error) {
	if op.Lease != 0 {
		l, _, err := x.lease(op.Lease)
		if err != nil {
			return t, err
		}
		t.TTL, t.Keeper = l.ttl, l.keeper
	}
	if len(op.End) == 0 {
		v, ok, err := x.newest(op.Key)
		if ok {
			t.Keys, t.Newest = 1, v.ModRevision
		}
		return t, err
	}
	res, err := x.rangeOf(op.Key, op.End, Range{KeysOnly: true}, 0)
	for i := range res.Kvs {
		t.Keys++
		t.Newest = max(t.Newest, res.Kvs[i].ModRevision)
	}
	return t, err
}

// setRecord writes a new record that counts as an element of the state's digest.
func (x *execution) setRecord(k, record []byte) {
	x.versions.Apply(kv.Set(k, record))
	x.addElement(k, record)
}

// dropRecord takes away a record that setRecord wrote.
func (x *execution) dropRecord(k []byte) error {
	record, ok, err := x.r.Get(k)
	if err == nil && !ok {
		err = fmt.Errorf("%w: no record %x", ErrCorrupt, k)
	}
	if err != nil {
		return err
	}
	x.versions.Apply(kv.Del(k))
	x.removeElement(k, record)
	return nil
}
