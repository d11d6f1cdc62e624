package votes

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/must"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/quorum"
)

// Guard signs the ballots of one anchor in one domain, and is the only code that does. It never signs a subject that
// contradicts one on its record (P7), and it returns the writes that make every fact durable before the ballot may
// leave (P8). When it receives a ballot of its own that the record does not have, it signs nothing more in the epoch
// (P9). It is not safe for concurrent use.
type Guard struct {
	key    PrivateKey
	anchor aweigh.AnchorID
	domain Domain
	record []Ballot    // by view, then kind; all at or above floor
	floor  aweigh.View // views below are forgotten
	lost   bool
}

// OpenGuard returns the guard of a key in a domain, with the record that the store holds of the epoch. The error wraps
// that of the store, or ErrRecord if the record is damaged or was written with another key, roster or policy: then it
// is not known what may still be signed.
func OpenGuard(key PrivateKey, d Domain, r kv.Reader) (*Guard, error) {
	g := &Guard{key: key, anchor: key.Public().ID(), domain: d}
	if err := g.load(r); err != nil {
		return nil, fmt.Errorf("votes: guard of %s: %w", d, err)
	}
	return g, nil
}

// Sign returns the ballot on a subject, and the writes that must be durable before the ballot leaves, in the order in
// which Sign returned them. For a subject that was signed before, it returns the same ballot and no writes; the writes
// of the first time must be durable all the same. The error wraps ErrMalformed, ErrLostState, ErrTooOld or
// ErrConflict; then nothing was signed.
func (g *Guard) Sign(s quorum.Subject) (Ballot, []kv.Op, error) {
	if !s.Valid() {
		return Ballot{}, nil, fmt.Errorf("%w: subject %v", ErrMalformed, s)
	}
	if g.lost {
		return Ballot{}, nil, fmt.Errorf("%w: refused %v in %s", ErrLostState, s, g.domain)
	}
	if s.View < g.floor {
		return Ballot{}, nil, fmt.Errorf("%w: refused %v, the record begins at %d", ErrTooOld, s, g.floor)
	}
	at, known := g.find(s)
	if known && g.record[at].Subject == s {
		return g.record[at], nil, nil
	}
	for _, old := range g.view(s.View) {
		if old.Subject.Conflicts(s) {
			return Ballot{}, nil, fmt.Errorf("%w: refused %v after %v", ErrConflict, s, old.Subject)
		}
	}
	must.Hold(!known, "two subjects of one view and kind conflict: %v", s)
	b := Ballot{Format: Format, Domain: g.domain, Subject: s, Anchor: g.anchor}
	b.Signature = g.key.Sign(ContextBallot, b.SigningBytes())
	g.record = slices.Insert(g.record, at, b)
	return b, []kv.Op{kv.Set(recordKey(g.domain, s.View, byte(s.Kind)), b.Encode())}, nil
}

// Record returns every vote on record, by view and then by kind.
func (g *Guard) Record() []quorum.Vote {
	votes := make([]quorum.Vote, len(g.record))
	for i := range g.record {
		votes[i] = g.record[i].Vote()
	}
	return votes
}

// Prune forgets the views below a view; nothing is ever signed in them again. The writes need not be durable before
// anything else happens, but must not be reordered against those of Sign.
func (g *Guard) Prune(below aweigh.View) []kv.Op {
	if below <= g.floor {
		return nil
	}
	g.floor = below
	ops := []kv.Op{kv.Set(recordKey(g.domain, 0, markFloor), encodeView(below))}
	n, _ := g.find(quorum.Subject{View: below})
	for _, b := range g.record[:n] {
		ops = append(ops, kv.Del(recordKey(g.domain, b.Subject.View, byte(b.Subject.Kind))))
	}
	g.record = slices.Delete(g.record, 0, n)
	return ops
}

// Witness examines a ballot that came from another node. If it is this guard's own and not on record, nor below the
// record, then the record has lost state or the key is in use twice, and the guard signs nothing more in this epoch
// (P9). The writes make that durable, with the ballot as evidence. lost is what Lost returns.
func (g *Guard) Witness(c Checked) (ops []kv.Op, lost bool) {
	b := c.b
	if g.lost || b.Anchor != g.anchor || b.Domain != g.domain || b.Subject.View < g.floor {
		return nil, g.lost
	}
	if at, known := g.find(b.Subject); known && g.record[at].Subject == b.Subject {
		return nil, false
	}
	g.lost = true
	return []kv.Op{kv.Set(recordKey(g.domain, 0, markLost), b.Encode())}, true
}

// Forget returns the writes that delete the record of an epoch that is over. The guard must not be used afterwards.
func (g *Guard) Forget() (ops []kv.Op) {
	for _, b := range g.record {
		ops = append(ops, kv.Del(recordKey(g.domain, b.Subject.View, byte(b.Subject.Kind))))
	}
	return append(ops, kv.Del(recordKey(g.domain, 0, markFloor)), kv.Del(recordKey(g.domain, 0, markLost)))
}

// May reports whether Sign would sign a subject.
func (g *Guard) May(s quorum.Subject) bool {
	if !s.Valid() || g.lost || s.View < g.floor {
		return false
	}
	for _, old := range g.view(s.View) {
		if old.Subject.Conflicts(s) {
			return false
		}
	}
	return true
}

// Knows reports whether Witness would accept a ballot of this guard's on the subject, so that the ballot need not be
// checked.
func (g *Guard) Knows(s quorum.Subject) bool {
	at, known := g.find(s)
	return g.lost || s.View < g.floor || known && g.record[at].Subject == s
}

// Lost reports whether the record is known to have lost state, in this life or an earlier one.
func (g *Guard) Lost() bool { return g.lost }

// find returns the place of a view and kind in the record.
func (g *Guard) find(s quorum.Subject) (int, bool) {
	return slices.BinarySearchFunc(g.record, s, func(b Ballot, s quorum.Subject) int {
		return cmp.Or(cmp.Compare(b.Subject.View, s.View), cmp.Compare(b.Subject.Kind, s.Kind))
	})
}

// view returns the record of one view.
func (g *Guard) view(v aweigh.View) []Ballot {
	from, _ := g.find(quorum.Subject{View: v})
	to := from
	for to < len(g.record) && g.record[to].Subject.View == v {
		to++
	}
	return g.record[from:to]
}

// owns reports whether a ballot stored under key is one that g can have signed.
func (g *Guard) owns(b *Ballot, key []byte) bool {
	return b.valid() == nil && b.Domain == g.domain && b.Anchor == g.anchor &&
		bytes.Equal(key, recordKey(g.domain, b.Subject.View, byte(b.Subject.Kind)))
}
