package scope

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/trust"
	"github.com/aweigh/aweigh/votes"
)

// Home names what a scope held when it closed. It stands in the terms of the scope's last epoch, so that its anchors
// have certified it.
type Home struct {
	_        struct{}    `cbor:",toarray"`
	Order    aweigh.Hash // Revocation.Hash of the order that it obeyed
	Revision int64       // of its key space
	Keys     int64
	Parts    aweigh.Hash // partsHash of what it held
}

// Item is a record of what a scope held when it closed.
type Item struct {
	_     struct{} `cbor:",toarray"`
	Kind  ItemKind
	Key   []byte // names the record: a key, UID, lease or charge
	Value []byte // its canonical encoding, or that of its record
}

// ItemKind tells the records of a scope apart.
type ItemKind uint8

// Kinds of items, in the order in which they stand.
const (
	ItemLease       ItemKind = 1 // ID(8) -> lease record, as it lasts
	ItemLeaseCharge ItemKind = 2 // ID(8) -> charge
	ItemAliases     ItemKind = 3 // UID -> aliases
	ItemKey         ItemKind = 4 // key -> KeyValue
	ItemKeyCharge   ItemKind = 5 // key -> charge
	ItemRedirect    ItemKind = 6 // key -> redirect
	ItemReceived    ItemKind = 7 // key -> itemReceived
)

// itemReceived is what was decided about a name that another scope sent.
type itemReceived struct {
	_  struct{} `cbor:",toarray"`
	ID aweigh.Hash
	Is Received
}

// homePart is how many bytes of items one part has, or it has one item.
const homePart = 512 << 10

// PartHash names a part.
func PartHash(part []byte) aweigh.Hash { return aweigh.Sum([]byte("aweigh/home-part/1"), part) }

// partsHash names all parts by their hashes.
func partsHash(parts []aweigh.Hash) aweigh.Hash {
	all := make([][]byte, 0, 1+len(parts))
	all = append(all, []byte("aweigh/home/1"))
	for i := range parts {
		all = append(all, parts[i][:])
	}
	return aweigh.Sum(all...)
}

// foldable reports why the scope cannot go home, whatever it holds.
func (s *State) foldable() error {
	e, err := s.Epoch()
	switch {
	case err != nil:
		return err
	case e.Home != nil:
		return errors.New("it is closed already")
	case s.head.Delegated > 0:
		return fmt.Errorf("it has delegated %s: take those back first", counted(s.head.Delegated, "prefix"))
	}
	n, err := s.names()
	if err == nil && n.Sent > 0 {
		err = fmt.Errorf("it has %s on the way to other scopes, which must decide first", counted(n.Sent, "name"))
	}
	return err
}

// Parts are the encodings of all that the scope holds, in parts, and what its terms say of them if it closes by an
// order. failure is the reason why it holds too much. Of a closed scope it gives what it closed with.
func (s *State) Parts(order aweigh.Hash) (parts [][]byte, h Home, failure, err error) {
	held, failure, err := s.holdings()
	if failure != nil || err != nil {
		return nil, h, failure, err
	}
	h = Home{Order: order, Revision: s.head.Revision, Keys: int64(len(held.keys))}
	var hashes []aweigh.Hash
	var part []Item
	size := 0
	end := func() {
		if len(part) > 0 {
			raw := canon.Encode(part)
			parts, hashes = append(parts, raw), append(hashes, PartHash(raw))
			part, size = nil, 0
		}
	}
	held.items(func(it Item) {
		n := len(it.Key) + len(it.Value)
		if size+n > s.bounds.HomePart {
			end()
		}
		part = append(part, it)
		size += n
	})
	end()
	if len(parts) > maxHomeParts {
		failure = fmt.Errorf("%d parts to bring home, at most %d are taken", len(parts), maxHomeParts)
	}
	h.Parts = partsHash(hashes)
	return parts, h, failure, nil
}

// holdings is all that the scope holds; failure is the reason why it is too much to go home.
func (s *State) holdings() (held *handover, failure, err error) {
	if s, err = s.Begin(); err != nil {
		return nil, nil, err
	}
	held = new(handover)
	failure, err = held.gather(newExecution(s, new(Block)), []byte(s.head.Prefix), func(int, int) error { return nil })
	return held, failure, err
}

// TooMuch is the reason why the scope holds too much to go home; nil if it does not.
func (s *State) TooMuch() (failure, err error) {
	_, failure, err = s.holdings()
	return failure, err
}

// items visits what is handed over, in order.
func (h *handover) items(visit func(Item)) {
	for _, id := range h.order {
		key := binary.BigEndian.AppendUint64(nil, uint64(id))
		visit(Item{Kind: ItemLease, Key: key, Value: h.leases[id].record()})
		if c, ok := h.charges.leases[id]; ok {
			visit(Item{Kind: ItemLeaseCharge, Key: key, Value: canon.Encode(c)})
		}
	}
	for _, u := range h.named {
		list := *h.lists[u]
		list.Last = 0 // it is of this scope's lineage
		visit(Item{Kind: ItemAliases, Key: u[:], Value: canon.Encode(list)})
	}
	for i := range h.keys {
		v := &h.keys[i]
		visit(Item{Kind: ItemKey, Key: v.Key, Value: canon.Encode(v)})
		if c, ok := h.charges.keys[string(v.Key)]; ok {
			visit(Item{Kind: ItemKeyCharge, Key: v.Key, Value: canon.Encode(c)})
		}
	}
	for i := range h.redirects {
		r := &h.redirects[i]
		visit(Item{Kind: ItemRedirect, Key: r.Key, Value: canon.Encode(redirect{Object: r.Object, To: r.To, Until: r.Until})})
	}
	for i := range h.received {
		r := &h.received[i]
		visit(Item{Kind: ItemReceived, Key: r.Key, Value: canon.Encode(itemReceived{ID: r.ID, Is: r.Received})})
	}
}

// closing is the succession of a scope that goes home: an epoch of the same anchors that has no blocks. What was
// decided is void.
func (s *State) closing(e *Epoch, d *decided, carried agenda, ledger trust.Ledger) (u *succession, failure, err error) {
	if failure := s.foldable(); failure != nil {
		return nil, failure, nil
	}
	_, h, failure, err := s.Parts(d.By)
	if failure != nil || err != nil {
		return nil, failure, err
	}
	u = &succession{ledger: ledger, scores: ledger, terms: e.Terms(), closes: true}
	u.terms.NonLeading = make([]bool, len(u.terms.Anchors))
	u.terms.Home = &h
	for i := range carried {
		if carried[i].Decision.Kind != Yield {
			u.dropped = append(u.dropped, dropped{carried[i], errors.New("the scope goes back to the one above, as that has ordered")})
		}
	}
	return u, nil, nil
}

// voidMotions ends all motions of a scope that goes home.
func (x *execution) voidMotions() error {
	var open []motionRecord
	var bad error
	for _, kind := range []byte{atDue, atOpen} {
		err := x.eachLine(kind, func(_ aweigh.Instant, id votes.MotionID, _ indexedMotion) bool {
			var rec motionRecord
			rec, bad = x.mustMotion(id)
			open = append(open, rec)
			return bad == nil
		})
		if err = errors.Join(err, bad); err != nil {
			return err
		}
	}
	for i := range open {
		if err := x.about(&open[i].Motion); err != nil {
			return err
		}
		why := "the scope goes back to the one above, as that has ordered: propose it again there"
		if err := x.close(&open[i], Ending{Fate: Void, Reason: why}); err != nil {
			return err
		}
	}
	return nil
}

// unpack reads all parts of what a scope held that had a prefix, and closed with h. failure is the reason why no scope
// can have held it.
func unpack(b *Bounds, prefix []byte, h *Home, parts [][]byte) (held *handover, failure error) {
	held = &handover{
		lists: make(map[aweigh.UID]*aliases), leases: make(map[int64]*lease),
		charges: passedOn{keys: make(map[string]charge), leases: make(map[int64]charge)},
	}
	for _, raw := range parts {
		items, err := decodePart(raw)
		if err != nil {
			return nil, err
		}
		for i := range items {
			it := &items[i]
			if err := held.take(b, prefix, h, it); err != nil {
				return nil, fmt.Errorf("a record of %q: %w", it.Key[:min(len(it.Key), 64)], err)
			}
		}
		if len(held.keys)+len(held.redirects)+len(held.received) > b.HandKeys || len(held.order) > b.HandKeys {
			return nil, fmt.Errorf("more than %d keys, redirects or leases", b.HandKeys)
		}
	}
	if int64(len(held.keys)) != h.Keys {
		return nil, fmt.Errorf("%d keys, where the scope held %d by its own word", len(held.keys), h.Keys)
	}
	return held, held.whole()
}

// decodePart reads the items of a part.
func decodePart(raw []byte) (items []Item, err error) {
	err = canon.Decode(raw, &items)
	if err == nil && len(items) == 0 {
		err = errors.New("a part without a record")
	}
	return items, err
}

// take adds an item to what is handed over. A version is at least one revision, so that no count is above that.
func (h *handover) take(b *Bounds, prefix []byte, home *Home, it *Item) error {
	ofKey := it.Kind == ItemKey || it.Kind == ItemKeyCharge || it.Kind == ItemRedirect || it.Kind == ItemReceived
	if ofKey && !bytes.HasPrefix(it.Key, prefix) {
		return fmt.Errorf("it is outside of %q", prefix)
	}
	again := errors.New("there are two of it")
	switch it.Kind {
	case ItemLease:
		l, err := readLease(it.Value)
		if err != nil || len(it.Key) != 8 || l.ttl < MinLeaseTTL || l.ttl > MaxLeaseTTL {
			return errors.New("no lease")
		}
		id := int64(binary.BigEndian.Uint64(it.Key))
		if h.leases[id] != nil || id == 0 {
			return again
		}
		h.leases[id] = &l
		h.order = append(h.order, id)
	case ItemLeaseCharge:
		if len(it.Key) != 8 {
			return errors.New("no lease")
		}
		id := int64(binary.BigEndian.Uint64(it.Key))
		if _, ok := h.charges.leases[id]; ok || h.leases[id] == nil {
			return again
		}
		c, err := readCharge(it.Value)
		h.charges.leases[id] = c
		return err
	case ItemAliases:
		list := new(aliases)
		if err := canon.Decode(it.Value, list); err != nil || len(it.Key) != len(aweigh.UID{}) || len(list.Held) == 0 || len(list.Held) > b.Aliases {
			return errors.New("no names of an object")
		}
		for i := range list.Held {
			if n := list.Held[i].Before; n < 0 || n > home.Revision {
				return errors.New("a name of an object with more versions than the scope has revisions")
			}
		}
		u := aweigh.UID(it.Key)
		if h.lists[u] != nil {
			return again
		}
		h.lists[u] = list
		h.named = append(h.named, u)
	case ItemKey:
		var v KeyValue
		if err := canon.Decode(it.Value, &v); err != nil || !bytes.Equal(v.Key, it.Key) {
			return errors.New("no key")
		}
		if v.Version < 1 || v.Version > home.Revision || v.CreateRevision < 1 || v.ModRevision < v.CreateRevision || v.ModRevision > home.Revision {
			return errors.New("its revisions are none that the scope had")
		}
		if v.Lease != 0 && h.leases[v.Lease] == nil {
			return errors.New("its lease is not there")
		}
		if n := len(h.keys); n > 0 && bytes.Compare(h.keys[n-1].Key, v.Key) >= 0 {
			return errors.New("it is out of order")
		}
		h.keys = append(h.keys, v)
	case ItemKeyCharge:
		c, err := readCharge(it.Value)
		if n := len(h.keys); err != nil || n == 0 || !bytes.Equal(h.keys[n-1].Key, it.Key) {
			return errors.New("no charge of the key before")
		}
		h.charges.keys[string(it.Key)] = c
	case ItemRedirect:
		var r redirect
		if err := canon.Decode(it.Value, &r); err != nil || !bytes.HasPrefix(r.To, prefix) || r.Until < 1 {
			return errors.New("no redirect")
		}
		if n := len(h.redirects); n > 0 && bytes.Compare(h.redirects[n-1].Key, it.Key) >= 0 {
			return errors.New("it is out of order")
		}
		h.redirects = append(h.redirects, Redirect{Key: it.Key, To: r.To, Object: r.Object, Until: r.Until})
	case ItemReceived:
		var r itemReceived
		if err := canon.Decode(it.Value, &r); err != nil {
			return errors.New("no decision about what was sent")
		}
		next := receivedAt{Key: it.Key, ID: r.ID, Received: r.Is}
		if n := len(h.received); n > 0 && h.received[n-1].compare(&next) >= 0 {
			return errors.New("it is out of order")
		}
		h.received = append(h.received, next)
	default:
		return fmt.Errorf("of kind %d", it.Kind)
	}
	return nil
}

// readCharge reads the charge of one key or lease: it counts once, and is recounted.
func readCharge(raw []byte) (c charge, err error) {
	if err = canon.Decode(raw, &c); err == nil && (len(c.Entries) == 0 || len(c.Entries) > maxAuthors || c.Amount < 0) {
		err = errors.New("no charge")
	}
	return c, err
}

// whole reports why records do not belong together: an object with several keys has a list of just these, and each
// lease has a key.
func (h *handover) whole() error {
	seen, leased := make(map[aweigh.UID]int, len(h.lists)), make(map[int64]bool, len(h.leases))
	for i := range h.keys {
		v := &h.keys[i]
		leased[v.Lease] = true
		switch list := h.lists[v.UID]; {
		case list != nil && list.find(v.Key) < 0:
			return fmt.Errorf("%q names an object that does not list it", v.Key)
		case list == nil && seen[v.UID] > 0:
			return fmt.Errorf("%q names an object that another key names, too", v.Key)
		}
		seen[v.UID]++
	}
	for u, list := range h.lists { // order-free: the reason is the same for each
		if len(list.Held) != seen[u] {
			return errors.New("an object lists a name that it does not have")
		}
	}
	for _, id := range h.order {
		if !leased[id] {
			return fmt.Errorf("lease %x has no key", uint64(id))
		}
	}
	return nil
}
