package scope

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/lineage"
)

// letGo lets a name go that another scope received, or keeps what that declined; failure is the reason why it cannot.
func (x *execution) letGo(c *CheckedCarrying) (failure, err error) {
	k := x.space.at(atSent, c.Key...)
	var rec Sent
	ok, err := x.view.record(k, &rec)
	if err != nil {
		return nil, err
	}
	decided := &c.Proof.Entry.Entry
	if !ok || rec.ID != decided.Prior || !bytes.Equal(rec.To, decided.Key) {
		return errNoTransfer, nil
	}
	v, there, err := x.newest(rec.Key)
	if err == nil && !there {
		err = fmt.Errorf("%w: %q was sent, and is not there", ErrCorrupt, rec.Key)
	}
	if err != nil {
		return nil, err
	}
	x.names.Sent--
	if err := x.replace(k, nil); err != nil {
		return nil, err
	}
	if decided.Class == lineage.Declined {
		x.enter(lineage.Entry{Class: lineage.Kept, Key: rec.Key, Prior: rec.ID, Reason: decided.Reason})
		return nil, nil
	}
	return nil, x.leaves(&v, &rec, "")
}

// leaves lets a name go that another scope received, or may have. why ends the reason of the entry.
func (x *execution) leaves(v *KeyValue, sent *Sent, why string) error {
	if x.left == nil {
		x.left = make(map[aweigh.UID]int64)
	}
	x.left[v.UID] = x.nextEntry() + 1
	return x.retire(v, lineage.Left, lineage.Left, asVersion(sent.Number)+" "+sentReason(sent.To)+why)
}

// givenUp ends the reason of an entry of class Left if an author gave the object up.
const givenUp = ", given up"

// GivenUp reports whether an object left by what an author decided, by the reason of the entry: no decision of the
// other scope was proven.
func GivenUp(reason string) bool { return strings.HasSuffix(reason, givenUp) }

// givesUp ends that a name is on its way, if it is, without a decision. The scope has no use for the object's identity
// any more, so that it makes no difference whether the other one received it.
func (x *execution) givesUp(v *KeyValue) (given bool, err error) {
	if x.names.Sent == 0 {
		return false, nil
	}
	sent, on, err := x.sentAt(v.Key)
	if err != nil || !on {
		return false, err
	}
	x.names.Sent--
	if err := x.replace(x.space.at(atSent, sent.Key...), nil); err != nil {
		return true, err
	}
	return true, x.leaves(v, &sent, givenUp)
}

// settles does with what was sent from here to a scope that comes home what the decision of that asks for.
func (x *execution) settles(all []receivedAt) error {
	if x.names.Sent == 0 || len(all) == 0 {
		return nil
	}
	sent, err := x.sent(nil, []byte{0}, int(x.names.Sent))
	if err != nil {
		return err
	}
	for i := range sent {
		at := slices.IndexFunc(all, func(r receivedAt) bool { return r.ID == sent[i].ID && bytes.Equal(r.Key, sent[i].To) })
		if at < 0 {
			continue
		}
		x.names.Sent--
		if err := x.replace(x.space.at(atSent, sent[i].Key...), nil); err != nil {
			return err
		}
		if !all[at].Taken {
			x.enter(lineage.Entry{Class: lineage.Kept, Key: sent[i].Key, Prior: sent[i].ID, Reason: "the scope that declined it came home"})
			continue
		}
		v, there, err := x.newest(sent[i].Key)
		if err == nil && !there {
			err = fmt.Errorf("%w: %q was sent, and is not there", ErrCorrupt, sent[i].Key)
		}
		if err == nil {
			err = x.leaves(&v, &sent[i], "")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// unlike makes an identity of an object that no other object of the scope has: liars of another scope may have sent
// one with it. Without names that came from there, there can be none.
func (x *execution) unlike(u aweigh.UID, sub uint32) (aweigh.UID, error) {
	for x.names.Received > 0 {
		_, was, err := x.r.Get(x.space.at(atObject, u[:]...))
		if err != nil || !was && !x.arrived[u] {
			return u, err
		}
		u = aweigh.NewUID(aweigh.Sum(u[:]), sub)
	}
	return u, nil
}

// decision takes a record of what was decided about a name. Some came from other scopes, without an entry: there are no
// more than a scope can receive, and than can be handed over at its founding and with each homecoming.
func (i *Import) decision(k []byte, rec SnapshotRecord) error {
	if i.received++; i.received > i.state.bounds.Transfers+(1+i.state.head.Folded)*int64(i.state.bounds.HandKeys) {
		return fmt.Errorf("%w: more decisions about names than a scope takes", ErrInvalid)
	}
	i.element(k, rec.Value)
	return nil
}
