package scope

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/lineage"
)

// A name moves to another scope of the network with its object (P67). The scope that has it sends it: the name can
// still be read, and does not change any more. The scope that decides about the new name receives the object with its
// identity, or declines; each decides once, by its own rules. The first scope then lets the name go, or keeps it. What
// either decided is proven to the other by its lineage, and nodes of anchors carry the proofs. The first scope waits
// for a decision: only one that is proven tells whether the other has the object. Once the time is over until which the
// other can receive it, an author can give the object up by deleting its key.

// Sent is the record of a name that is on its way to another scope.
type Sent struct {
	_      struct{} `cbor:",toarray"`
	Key    []byte
	To     []byte         // the name that it is to have
	Until  aweigh.Instant // by the time of the scope that decides about To: later it declines
	Number int64          // of the version of the object
	ID     aweigh.Hash    // hash of the entry of class lineage.Sent
	Entry  int64          // its index
}

// Received is the record of what a scope decided about a name that another one sent. It goes with its key to the scope
// that decides about that next.
type Received struct {
	_     struct{}       `cbor:",toarray"`
	Taken bool           // or declined
	Scope aweigh.ScopeID // that decided
	Entry int64          // index in the lineage of that
}

// receivedBytes is what a Received takes besides its key, at most.
const receivedBytes = 128

// receivedAt is a record of that kind with its place.
type receivedAt struct {
	Key []byte
	ID  aweigh.Hash // Sent.ID
	Received
}

func (r *receivedAt) compare(o *receivedAt) int {
	return cmp.Or(bytes.Compare(r.Key, o.Key), bytes.Compare(r.ID[:], o.ID[:]))
}

const (
	// MaxTransfer bounds how long after the block's time Sent.Until may lie.
	MaxTransfer = 7 * 24 * time.Hour
	// maxTransfers bounds the names of a scope that are on their way.
	maxTransfers = 10_000
)

// What fails where names move between scopes.
var (
	ErrSent          = errors.New("scope: the alias is on its way to another scope, and does not change until that has decided")
	ErrTransfers     = fmt.Errorf("scope: %d aliases are on their way to other scopes, as many as can be; wait until some have arrived", maxTransfers)
	ErrTransferUntil = fmt.Errorf("scope: what is sent can be received until a time after the block's, and at most %d days later", MaxTransfer/(24*time.Hour))
	ErrSendLeased    = errors.New("scope: a key with a lease stays in its scope; put it without the lease first")
	ErrSendAliases   = errors.New("scope: the object has other aliases here, and lives in one scope; unbind them first")
	ErrSendGrant     = errors.New("scope: by a grant, nothing is sent to another scope, where the grant counts nothing")
	ErrNoTransfers   = errors.New("scope: the policy lets no alias move to another scope, or come from there (names.transfers)")
	ErrSendHere      = errors.New("scope: both aliases are of this scope: move the alias")

	errNoTransfer   = errors.New("scope: nothing was sent that this decides about")
	errManyReceived = fmt.Errorf("scope: %d decisions about names that were sent are on record, as many as can be", maxTransfers)
	errReceived     = errors.New("scope: this was decided before")
)

// sentTo is what an entry of class lineage.Sent names: where to, until when, and as which version of the object.
func sentTo(to []byte, until aweigh.Instant, number int64) aweigh.Hash {
	n := binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, uint64(until)), uint64(number))
	return aweigh.Sum([]byte("aweigh/sent/1"), n, to)
}

// received is the store's key of what was decided about a name.
func (s *space) received(to []byte, id aweigh.Hash) []byte {
	b := append(append(make([]byte, 0, len(s)+len(to)+len(id)+3), s[:]...), atReceived)
	return append(append(appendEscaped(b, to), escape, escapeEnd), id[:]...)
}

// Sent are the names of [key, end), in the sense of Op, that are on their way to other scopes, in order, at most so
// many.
func (v *view) sent(key, end []byte, most int) (all []Sent, err error) {
	prefix := v.space.at(atSent)
	var bad error
	err = v.r.Scan(v.space.at(atSent, key...), v.space.at(atSent+1), false, func(k, raw []byte) bool {
		if !Within(k[len(prefix):], key, end) || len(all) >= most {
			return false
		}
		var s Sent
		if bad = canon.Decode(raw, &s); bad != nil {
			bad = fmt.Errorf("%w: what was sent of %q: %w", ErrCorrupt, k[len(prefix):], bad)
			return false
		}
		all = append(all, s)
		return true
	})
	return all, errors.Join(err, bad)
}

// Sent are the names that are on their way to other scopes, in order, at most so many.
func (s *State) Sent(most int) (all []Sent, err error) {
	n, err := s.names()
	if err != nil || n.Sent == 0 {
		return nil, err
	}
	return s.sent(nil, []byte{0}, most)
}

// SentAt tells whether what a key names is on its way to another scope.
func (s *State) SentAt(key []byte) (is Sent, ok bool, err error) { return s.sentAt(key) }

func (v *view) sentAt(key []byte) (is Sent, ok bool, err error) {
	ok, err = v.record(v.space.at(atSent, key...), &is)
	return is, ok, err
}

// Received tells what was decided about a name that another scope sent; ok is false if nothing was.
func (s *State) Received(to []byte, id aweigh.Hash) (r Received, ok bool, err error) {
	ok, err = s.record(s.space.received(to, id), &r)
	return r, ok, err
}

// departs reports that a name of [key, end), in the sense of Op, is on its way to another scope. After Sent.Until a
// change that ends one name alone, and says so, gives it up.
func (x *execution) departs(key, end []byte, ends bool) (failure, err error) {
	if x.names.Sent == 0 {
		return nil, nil
	}
	on, err := x.sent(key, end, 1)
	if err != nil || len(on) == 0 || ends && len(end) == 0 && x.block.Header.Time > on[0].Until {
		return nil, err
	}
	return ErrSent, nil
}

// send is naming for a Send.
func (x *execution) send(n *Naming, v *KeyValue) (apply func() error, failure, err error) {
	list, _, err := x.chain(v)
	if err != nil {
		return nil, nil, err
	}
	switch now := x.block.Header.Time; {
	case !x.policy.Transfers:
		failure = ErrNoTransfers
	case n.Until <= now || n.Until.Sub(now) > MaxTransfer:
		failure = ErrTransferUntil
	case v.Lease != 0:
		failure = ErrSendLeased
	case list != nil && len(list.Held) > 1:
		failure = ErrSendAliases
	case len(x.mutation.grants) > 0:
		failure = ErrSendGrant
	case x.names.Sent >= x.bounds.Transfers:
		failure = ErrTransfers
	case x.next.own.owns(n.To, nil) == nil:
		failure = ErrSendHere
	}
	if failure != nil {
		return nil, failure, nil
	}
	return func() error {
		rec := Sent{Key: n.Key, To: n.To, Until: n.Until, Number: list.before(n.Key) + v.Version, Entry: x.nextEntry()}
		x.enter(lineage.Entry{
			Class: lineage.Sent, Key: n.Key, Prior: v.Digest(), Posterior: sentTo(rec.To, rec.Until, rec.Number), Reason: sentReason(rec.To),
		})
		rec.ID = x.entries[len(x.entries)-1].Hash()
		x.names.Sent++
		return x.replace(x.space.at(atSent, n.Key...), rec)
	}, nil, nil
}

func sentReason(to []byte) string { return "to " + quoted(to) }

// quoted is a key in a reason. What is printable depends on tables of Unicode, which differ between versions of Go, and
// a key may be long.
func quoted(key []byte) string {
	const most = 64
	if len(key) > most {
		return fmt.Sprintf("%+q…", key[:most])
	}
	return fmt.Sprintf("%+q", key)
}

// transfer takes what another scope decided about a name: it sent it here, or it decided about one that was sent from
// here.
func (x *execution) transfer(c *CheckedCarrying) (failure, err error) {
	if _, acts := x.epoch.seats[x.mutation.Author]; !acts {
		return denial{errNoAnchorsNode}, nil
	}
	if failure := x.spend(c.work()); failure != nil {
		return failure, nil
	}
	if c.network != x.next.head.Network {
		return fmt.Errorf("%w: of another network", errNoTransfer), nil
	}
	if c.Proof.Entry.Entry.Class == lineage.Sent {
		failure, err = x.receive(&c.Proof)
	} else {
		failure, err = x.letGo(c)
	}
	if failure == nil && err == nil {
		x.next.head.Revision = x.revision()
	}
	return failure, err
}

// receive decides about a name that another scope sent; failure is the reason why it cannot.
func (x *execution) receive(p *TransferProof) (failure, err error) {
	if failure := x.next.own.owns(p.To, nil); failure != nil {
		return failure, nil
	}
	sent := &p.Entry.Entry
	id := sent.Hash()
	k := x.space.received(p.To, id)
	if _, known, err := x.r.Get(k); known || err != nil {
		return errReceived, err
	}
	as := &CheckedMutation{ID: x.mutation.ID, Mutation: Mutation{Author: sent.Author, Class: Name}, Naming: &Naming{Kind: Bind, To: p.To}}
	if x.names.Received >= x.bounds.Transfers {
		return errManyReceived, nil
	}
	if failure := x.paced(as); failure != nil { // it can be carried again later
		return failure, nil
	}
	why, last, err := x.declines(p, as)
	if err != nil || x.purse.empty {
		return why, err
	}
	rec := Received{Taken: why == nil, Scope: x.next.head.Scope, Entry: x.nextEntry()}
	if why != nil {
		x.enter(lineage.Entry{Class: lineage.Declined, Key: p.To, Prior: id, Reason: reason(why)})
	} else if err := x.arrives(p, id, last); err != nil {
		return nil, err
	}
	x.names.Received++
	return nil, x.replace(k, rec)
}

// declines is the reason why the scope does not take what was sent to it: what its author could not put there itself.
// as is a mutation of that author which binds the name; last is that of mayReceive.
func (x *execution) declines(p *TransferProof, as *CheckedMutation) (why error, last int64, err error) {
	sent, lim := &p.Entry.Entry, &x.policy.Limits
	rights := x.epoch.Rights(sent.Author)
	put := Op{Kind: OpPut, Key: p.To}
	approval, _ := x.policy.longest(&put, false, "") // of one key it never fails
	switch {
	case !x.policy.Transfers:
		return ErrNoTransfers, 0, nil
	case p.Number >= x.nextRevision(): // no scope has written so many
		return errors.New("scope: no object has so many versions"), 0, nil
	case p.Until < x.block.Header.Time:
		return errors.New("scope: it came too late"), 0, nil
	case len(p.Kv.Value) > lim.ValueBytes:
		return fmt.Errorf("scope: a value of %d bytes, at most %d are taken", len(p.Kv.Value), lim.ValueBytes), 0, nil
	case !rights.permits(VerbAlias, p.To, nil):
		return rights.unauthorized(VerbAlias, p.To, nil), 0, nil
	case approval != nil:
		return errors.New("scope: a put of this key takes approval, which nothing that is sent can have"), 0, nil
	case x.epoch.rules.Has(writeVerb):
		return errors.New("scope: rules decide here what may be written, and judge nothing that is sent"), 0, nil
	case x.policy.PartitionOf(p.To) != nil:
		return errors.New("scope: the key is of a partition, which takes nothing that is sent"), 0, nil
	case x.next.head.Full(x.policy):
		return ErrNoSpace, 0, nil
	}
	if err := lim.checkKey(p.To); err != nil {
		return err, 0, nil
	}
	carrier := x.mutation // the author of what was sent pays for the key
	x.mutation = as
	why, err = x.free(p.To, len(p.Kv.Value))
	x.mutation = carrier
	if why != nil || err != nil {
		return why, 0, err
	}
	free, last, err := x.mayReceive(p.Kv.UID)
	if err == nil && !free {
		why = errors.New("scope: an object of this scope has the identity")
	}
	return why, last, err
}

// mayReceive reports whether an object can come here that has an identity: none of the scope has it, or the one that
// left. last is the index of its last entry then, plus one.
func (x *execution) mayReceive(u aweigh.UID) (ok bool, last int64, err error) {
	k := x.space.at(atObject, u[:]...)
	if x.arrived[u] || slices.ContainsFunc(x.ops, func(op kv.Op) bool { return bytes.Equal(op.Key, k) }) { // made by this block
		return false, 0, nil
	}
	raw, was, err := x.r.Get(k)
	if err != nil || !was {
		return err == nil, 0, err
	}
	o, err := readObject(raw)
	if err != nil || o.End == 0 {
		return false, 0, err
	}
	e, err := x.entryAt(o.End - 1)
	return err == nil && (e.Class == lineage.Left || e.Class == lineage.HandedOver), o.End, err
}

// arrives writes what was sent under its new name; last is that of mayReceive.
func (x *execution) arrives(p *TransferProof, id aweigh.Hash, last int64) error {
	if err := x.deleteRedirect(p.To); err != nil {
		return err
	}
	u := p.Kv.UID
	if x.arrived == nil {
		x.arrived = make(map[aweigh.UID]bool)
	}
	x.arrived[u] = true
	k := x.space.at(atObject, u[:]...)
	if last > 0 {
		x.ops = append(x.ops, kv.Del(k)) // so that an Undo knows what was there
	}
	x.ops = append(x.ops, kv.Set(k, object{Key: p.To}.record()))
	at := x.place()
	v := KeyValue{
		Key: p.To, Value: p.Kv.Value, CreateRevision: at.main, ModRevision: at.main, Sub: at.sub, Version: p.Number + 1, UID: u, Entry: x.nextEntry(),
	}
	e := lineage.Entry{Class: lineage.Received, Key: p.To, Object: u, Prev: last, Prior: id, Reason: receivedReason(p.Entry.Entry.Scope, p.Kv.Key)}
	var err error
	if e.Posterior, err = x.store(&v); err != nil {
		return err
	}
	x.enter(e)
	return nil
}

// receivedReason is that of the entry of an object that was received: which scope sent it, and what its name was there.
func receivedReason(from aweigh.ScopeID, key []byte) string {
	return homeReason(from) + " as " + quoted(key)
}

// ParseReceived reads the reason of an entry of class Received: which scope sent the object.
func ParseReceived(reason string) (from aweigh.ScopeID, ok bool) {
	first, _, cut := strings.Cut(reason, " as ")
	from, ok = ParseHome(first)
	return from, ok && cut
}

// receivedBelow are the records about names with a prefix that other scopes sent, in order, at most so many.
func (x *execution) receivedBelow(prefix []byte, most int) (all []receivedAt, err error) {
	if x.names.Received == 0 {
		return nil, nil
	}
	start := x.space.at(atReceived)
	from := appendEscaped(bytes.Clone(start), prefix)
	var bad error
	err = x.r.Scan(from, kv.PrefixEnd(from), false, func(k, raw []byte) bool {
		r := receivedAt{}
		rest := k[len(start):]
		if len(rest) < len(r.ID)+2 {
			bad = fmt.Errorf("%w: what was received, %x", ErrCorrupt, rest)
			return false
		}
		r.Key = bytes.Clone(keyOf(rest[:len(rest)-len(r.ID)]))
		copy(r.ID[:], rest[len(rest)-len(r.ID):])
		if bad = canon.Decode(raw, &r.Received); bad != nil {
			bad = fmt.Errorf("%w: what was received of %q: %w", ErrCorrupt, r.Key, bad)
			return false
		}
		all = append(all, r)
		return len(all) < most
	})
	return all, errors.Join(err, bad)
}
