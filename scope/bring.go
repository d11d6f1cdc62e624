package scope

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/votes"
)

// Bringing is a step in which a folded scope comes home (P65). It proves itself: handovers lead from the scope's
// genesis, or from an epoch of it that an earlier step reached, to the epoch in which it closed; and the terms of that
// one name the parts of what it held.
type Bringing struct {
	_         struct{}      `cbor:",toarray"`
	Prefix    []byte        // of the scope that comes home
	Genesis   []byte        // of that scope, for the first step
	Epoch     []byte        // or an encoded Epoch of it, for the next ones
	Handovers []Handover    // from there
	Parts     []aweigh.Hash // of all parts, once the handovers lead to the end
	Index     int64         // of Part
	Part      []byte        // empty while the way is shown
}

// CheckedBringing is a Bringing of a proper form. Once it is verified, it is what it claims to be, apart from what the
// state must know.
type CheckedBringing struct {
	Bringing
	start   aweigh.Hash // names what the handovers start from
	reached *Epoch      // by them
}

// maxHomeParts bounds the parts of what a scope held.
const maxHomeParts = 1 << 12

// checkBringing reads a Bringing. It leaves all that takes work for an author to verify, whose signature comes first.
func checkBringing(content []byte) (*CheckedBringing, error) {
	c := new(CheckedBringing)
	if err := canon.Decode(content, &c.Bringing); err != nil {
		return nil, err
	}
	if len(c.Prefix) == 0 || len(c.Prefix) > maxPrefix {
		return nil, fmt.Errorf("a prefix of %d bytes", len(c.Prefix))
	}
	if c.isPart() {
		if len(c.Genesis)+len(c.Epoch)+len(c.Handovers)+len(c.Parts) > 0 || c.Index < 0 || c.Index >= maxHomeParts {
			return nil, errors.New("a part with something else, or of no place")
		}
		_, err := decodePart(c.Part)
		return c, err
	}
	switch {
	case (len(c.Genesis) > 0) == (len(c.Epoch) > 0):
		return nil, errors.New("it starts from no epoch, or from two")
	case len(c.Handovers) == 0 || len(c.Handovers) > maxRejoinHandovers:
		return nil, fmt.Errorf("%d handovers, between 1 and %d are taken", len(c.Handovers), maxRejoinHandovers)
	case c.Index != 0 || len(c.Parts) > maxHomeParts:
		return nil, errors.New("the place of a part, and no part, or too many parts")
	}
	return c, nil
}

// isPart reports whether it brings a part, rather than shows the way.
func (b *Bringing) isPart() bool { return len(b.Part) > 0 }

// signatures is how many the certificates of the handovers have.
func (b *Bringing) signatures() (n int) {
	for i := range b.Handovers {
		n += len(b.Handovers[i].Final.Certificate.Signatures)
	}
	return n
}

// verify follows the handovers, and checks the signatures of their certificates.
func (c *CheckedBringing) verify(verify votes.Verifier) (err error) {
	if c.isPart() {
		return nil
	}
	if c.reached, err = c.from(); err != nil {
		return err
	}
	for i := range c.Handovers {
		if c.reached.Home != nil {
			return errors.New("handovers beyond the end of a scope")
		}
		if c.reached, err = c.reached.follow(c.Handovers[i], verify); err != nil {
			return err
		}
	}
	h := c.reached.Home
	switch {
	case h == nil && len(c.Parts) > 0:
		return errors.New("parts of a scope that is not closed")
	case h == nil:
		return nil
	case partsHash(c.Parts) != h.Parts:
		return errors.New("other parts than those that the scope closed with")
	case h.Revision < 1 || h.Keys < 0:
		return errors.New("a scope of no revision")
	}
	return nil
}

// from is the epoch from which the handovers lead on.
func (c *CheckedBringing) from() (*Epoch, error) {
	if len(c.Epoch) > 0 {
		c.start = epochDigest(c.Epoch)
		return decodeEpoch(c.Epoch)
	}
	c.start = GenesisHash(c.Genesis)
	g, err := DecodeGenesis(c.Genesis)
	if err != nil {
		return nil, err
	}
	return g.Epoch()
}

// Reached is the epoch to which the way leads that is shown; nil if none is.
func (c *CheckedBringing) Reached() *Epoch { return c.reached }

// bringUnits is what a step costs besides its bytes: the hashes of all parts are read and written.
const bringUnits = 1500

// cost is what a step may cost at most, by its form: its records are decoded and kept.
func (c *CheckedBringing) cost() int64 {
	return bringUnits + int64(len(c.Part)+len(c.Epoch)+32*len(c.Parts))/givenBytes
}

// Homing tells how far a scope has come home that is ordered to, or that may ask for it.
type Homing struct {
	Prefix []byte
	Child  aweigh.ScopeID
	Order  aweigh.Hash  // Revocation.Hash; zero: there is no order yet
	Epoch  aweigh.Epoch // of the child, to which the way was shown; 0: to its genesis
	Closed bool         // and that is its last
	Parts  int64        // that there are, if it is closed
	Next   int64        // part
	at     aweigh.Hash
}

// homing is the record of a Homing.
type homing struct {
	_     struct{} `cbor:",toarray"`
	Epoch aweigh.Epoch
	At    aweigh.Hash   // names what the next handovers start from
	Home  *Home         // nil until the way leads to the end
	Parts []aweigh.Hash // their hashes
	Next  int64
	Bytes int64 // of the parts so far
}

func (s *space) homing(child aweigh.ScopeID) []byte { return s.at(atHoming, child[:]...) }

func (s *space) homePart(child aweigh.ScopeID, index int64) []byte {
	return binary.BigEndian.AppendUint64(s.at(atHomePart, child[:]...), uint64(index))
}

// mostHomeAhead is by how many revisions the scope that comes home may be ahead, so that it is waited for: an hour's.
const mostHomeAhead = int64(time.Hour/time.Millisecond) << 20

// Why a step is not the one to take.
var (
	errNoFold    = errors.New("scope: no such scope was ordered to come home")
	errOtherStep = errors.New("scope: another step of what comes home is next")
	errHomeAhead = errors.New("scope: the time of the scope that comes home is ahead of this one's")
)

// Homings are the scopes that are ordered to come home, or may be without a decision, in order of their prefixes.
func (s *State) Homings() (all []Homing, err error) {
	own, err := s.region()
	if err != nil {
		return nil, err
	}
	e, err := s.Epoch()
	if err != nil {
		return nil, err
	}
	for i := range own.given {
		d := &own.given[i]
		h := Homing{Prefix: d.Prefix, Child: d.Child, at: d.Child}
		switch {
		case d.Revocation != nil && d.Revocation.Folds():
			h.Order = d.Revocation.Hash()
		case e.mayFold(d) != nil:
			continue
		}
		var rec homing
		ok, err := s.record(s.space.homing(d.Child), &rec)
		if err != nil {
			return nil, err
		}
		if ok {
			h.Epoch, h.Closed, h.Parts, h.Next, h.at = rec.Epoch, rec.Home != nil, int64(len(rec.Parts)), rec.Next, rec.At
		}
		all = append(all, h)
	}
	return all, nil
}

// bring takes the next step in which a folded scope comes home.
func (x *execution) bring(c *CheckedBringing) (failure, err error) {
	if _, acts := x.epoch.seats[x.mutation.Author]; !acts {
		return denial{errNoAnchorsNode}, nil
	}
	if failure := x.spend(c.cost()); failure != nil {
		return failure, nil
	}
	d, ok := x.next.own.given.find(c.Prefix)
	if !ok || !bytes.Equal(d.Prefix, c.Prefix) || d.Revocation != nil && !d.Revocation.Folds() {
		return errNoFold, nil
	}
	if d.Revocation == nil {
		if failure, err := x.mayCallHome(&d, c.reached); failure != nil || err != nil {
			return failure, err
		}
	}
	k := x.space.homing(d.Child)
	rec := homing{At: d.Child}
	if _, err := x.view.record(k, &rec); err != nil {
		return nil, err
	}
	if c.isPart() {
		failure = rec.next(x.bounds, c)
	} else {
		failure = rec.goOn(c, d.Revocation)
	}
	if failure == nil && rec.whole() {
		if ahead := rec.Home.Revision - x.nextRevision(); ahead >= 0 && ahead < mostHomeAhead { // beyond it, it is no revision
			failure = errHomeAhead
		}
	}
	if failure != nil {
		return failure, nil
	}
	if c.isPart() {
		x.setRecord(x.space.homePart(d.Child, c.Index), c.Part)
	}
	if err := x.replace(k, rec); err != nil {
		return nil, err
	}
	if d.Revocation == nil {
		x.callHome(&d, c.reached)
	}
	if !rec.whole() {
		return nil, nil
	}
	if err := x.loadAgenda(); err != nil {
		return nil, err
	}
	x.decide(decided{Decision: Decision{Kind: Return, Child: &Child{Prefix: d.Prefix}}, Opened: x.block.Header.Time})
	return nil, nil
}

// whole reports whether all parts are there.
func (h *homing) whole() bool { return h.Home != nil && h.Next == int64(len(h.Parts)) }

// homeOverhead is how many bytes the records of a key take besides the key and its value, at most.
const homeOverhead = 1 << 10

// goOn takes handovers; failure is why they are not the next ones, or lead elsewhere. order is nil before the scope is
// ordered to come home.
func (h *homing) goOn(c *CheckedBringing, order *Revocation) (failure error) {
	switch e := c.reached; {
	case h.Home != nil || c.start != h.At:
		return errOtherStep
	case e.Home != nil && (order == nil || e.Home.Order != order.Hash()):
		return errNoFold
	default:
		h.Epoch, h.At, h.Home, h.Parts = e.Number, e.record, e.Home, c.Parts
	}
	return nil
}

// next takes a part; failure is why it is not the next one.
func (h *homing) next(b *Bounds, c *CheckedBringing) (failure error) {
	if h.Home == nil || h.whole() || c.Index != h.Next || PartHash(c.Part) != h.Parts[c.Index] {
		return errOtherStep
	}
	h.Next++
	if h.Bytes += int64(len(c.Part)); h.Bytes > 2*int64(b.HandBytes)+homeOverhead*int64(b.HandKeys) { // no more can have been held
		h.Parts = h.Parts[:h.Next]
	}
	return nil
}

// HomeSource is what a node has of a scope that closed, to bring it home.
type HomeSource struct {
	State   *State // of the closed scope
	Genesis Genesis
	// Handovers are those of blocks above a height, in order, at most so many.
	Handovers func(above aweigh.Height, most int) ([]Handover, error)
	parts     [][]byte // once they were read
}

// Next is the next step, of about so many bytes at most; nil if there is none.
func (src *HomeSource) Next(h *Homing, most int) (*Bringing, error) {
	if !h.Closed {
		return src.way(h, most)
	}
	if h.Next >= h.Parts {
		return nil, nil
	}
	parts, err := src.all(h.Order)
	switch {
	case err != nil:
		return nil, err
	case int64(len(parts)) != h.Parts:
		return nil, errors.New("scope: this node has other parts of what comes home")
	case len(parts[h.Next]) > most:
		return nil, fmt.Errorf("scope: a part of what comes home has %d bytes: raise limits.mutation_bytes, limits.bundle_bytes and limits.block_bytes of the scope above", len(parts[h.Next]))
	}
	return &Bringing{Prefix: h.Prefix, Index: h.Next, Part: parts[h.Next]}, nil
}

// all are the parts of what the scope held.
func (src *HomeSource) all(order aweigh.Hash) ([][]byte, error) {
	if src.parts == nil {
		parts, _, failure, err := src.State.Parts(order)
		if failure != nil || err != nil {
			return nil, cmp.Or(err, failure)
		}
		src.parts = parts
	}
	return src.parts, nil
}

// way is the next step of the way to the epoch in which the scope closed.
func (src *HomeSource) way(h *Homing, most int) (*Bringing, error) {
	b := &Bringing{Prefix: h.Prefix}
	e, err := src.Genesis.Epoch()
	if err != nil {
		return nil, err
	}
	if h.Epoch == 0 {
		b.Genesis = src.Genesis.Encode()
	}
	later := func(votes.PublicKey, votes.Context, []byte, []byte) error { return nil } // this node followed them before
	for e.Number < h.Epoch {
		more, err := src.Handovers(e.Start, handoversAtOnce)
		if err != nil {
			return nil, err
		}
		if len(more) == 0 {
			return nil, errors.New("scope: handovers of a scope that comes home are missing here")
		}
		for i := range more {
			if e, err = e.follow(more[i], later); err != nil {
				return nil, err
			}
			if e.Number == h.Epoch {
				break
			}
		}
	}
	if h.Epoch > 0 {
		b.Epoch = e.Encode()
	}
	size, signed := len(b.Genesis)+len(b.Epoch), 0
	more, err := src.Handovers(e.Start, maxRejoinHandovers)
	if err != nil {
		return nil, err
	}
	for i := range more {
		size += len(canon.Encode(more[i]))
		signed += len(more[i].Final.Certificate.Signatures)
		if i > 0 && (size > most || signed > maxRejoinSigned) {
			return b, nil
		}
		b.Handovers = append(b.Handovers, more[i])
		if e, err = e.follow(more[i], later); err != nil {
			return nil, err
		}
		if e.Home == nil {
			continue
		}
		parts, err := src.all(e.Home.Order)
		if err != nil {
			return nil, err
		}
		for _, p := range parts {
			b.Parts = append(b.Parts, PartHash(p))
		}
		break
	}
	if len(b.Handovers) == 0 && h.Order.IsZero() {
		return nil, nil
	}
	if len(b.Handovers) == 0 {
		return nil, errors.New("scope: a scope that is ordered to come home has not closed yet")
	}
	return b, nil
}

// handoversAtOnce is how many are read together.
const handoversAtOnce = 256
