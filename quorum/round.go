package quorum

import (
	"math/bits"

	"github.com/aweigh/aweigh"
)

// round is an engine's state of one view. Anchors are identified by their seats.
type round struct {
	view   aweigh.View
	leader aweigh.AnchorID
	seat   int // of leader

	proposal *Proposal // the proposal of the leader's first vote for a block
	check    check

	votes   [Finalize + 1]*votes // by kind; nil while there is none
	counts  []count              // of votes, by subject
	certs   [Finalize + 1]*Certificate
	ended   aweigh.Instant // when the first certificate came
	accused []bool         // by seat: a fault was reported

	signed [Finalize + 1]bool // kinds of which this anchor signed a vote
	asked  bool               // to build
	// obliged is set if this anchor gave the view up because others did, without work of its own.
	obliged bool

	// In mode Fast:
	own       aweigh.Hash    // the block that this anchor notarized
	evidenced []evidenced    // blocks that the leader voted for
	seconds   []Vote         // further nullify ballots of anchors that signed several
	grounds   int            // votes in the last Ground
	passes    bool           // nullify ballots prove that no block is final
	slowAt    aweigh.Instant // finalize is signed then, if the view is not decided before
}

// check is how far the validation of a round's proposal got.
type check uint8

const (
	unchecked check = iota
	checking        // handed out
	valid
	invalid
)

// votes holds the votes of one kind, of each anchor the first.
type votes struct {
	casts []cast   // by seat
	voted []uint64 // a bit for each seat that has one
}

// cast is the vote of a seat, without what follows from its place: a roster of a thousand anchors casts millions of
// votes.
type cast struct {
	count     int // place of its subject among the counts, from 1; 0: none was cast
	signature []byte
}

// count sums up the votes for one subject as they come, so that a new vote does not require a look at all the others.
type count struct {
	subject Subject
	weight  uint64
	anchors int
}

// cert returns the certificate of a kind, zero if there is none.
func (r *round) cert(k Kind) Certificate {
	if c := r.certs[k]; c != nil {
		return *c
	}
	return Certificate{}
}

func (r *round) has(k Kind) bool { return r.certs[k] != nil }

// over reports whether the view ended, so that the next can be entered (P11).
func (r *round) over() bool { return r.has(Notarize) || r.skipped() || r.has(Finalize) }

// skipped reports whether the view may be passed over (P12): it was nullified.
func (r *round) skipped() bool { return r.has(Nullify) || r.passes }

// block returns the certificate that names the view's block; ok is false if there is none.
func (r *round) block() (Certificate, bool) {
	if r.has(Notarize) {
		return r.cert(Notarize), true
	}
	return r.cert(Finalize), r.has(Finalize)
}

// quiet reports whether the view has no votes.
func (r *round) quiet() bool { return len(r.counts) == 0 }

// hasVote reports whether there is a vote of an anchor and kind. It uses the bits: those of a large roster stay in the
// processor's cache, and votes do not.
func (r *round) hasVote(k Kind, seat int) bool {
	return r.votes[k] != nil && r.votes[k].voted[seat/64]>>(seat%64)&1 != 0
}

// held returns the subject of an anchor's vote of a kind, the zero Subject if there is none.
func (r *round) held(k Kind, seat int) Subject {
	if !r.hasVote(k, seat) {
		return Subject{}
	}
	return r.counts[r.votes[k].casts[seat].count-1].subject
}

// rival returns the kind of a vote that conflicts with v and that the same anchor has cast (P36).
func (r *round) rival(v *Vote, seat int) (Kind, bool) {
	for k := Notarize; k <= Finalize; k++ {
		if old := r.held(k, seat); old.View != 0 && old.Conflicts(v.Subject) {
			return k, true
		}
	}
	return 0, false
}

// fault returns what v proves together with an earlier vote, at most once for each anchor, since the same conflict
// comes again with every offer.
func (r *round) fault(v *Vote, seat, seats int) (Fault, bool) {
	if r.accused != nil && r.accused[seat] {
		return Fault{}, false
	}
	k, ok := r.rival(v, seat)
	if !ok {
		return Fault{}, false
	}
	if r.accused == nil {
		r.accused = make([]bool, seats)
	}
	r.accused[seat] = true
	old := Vote{r.held(k, seat), Signature{Anchor: v.Anchor, Bytes: r.votes[k].casts[seat].signature}}
	return Fault{First: old, Second: *v}, true
}

// add counts v if it is its signer's first vote of its kind. met reports whether v brought its subject to the weight
// that the rule requires.
func (r *round) add(v *Vote, seat int, w *Weights, rule Rule) (met bool) {
	if r.votes[v.Kind] == nil {
		r.votes[v.Kind] = &votes{make([]cast, w.Len()), make([]uint64, (w.Len()+63)/64)}
	}
	if r.hasVote(v.Kind, seat) {
		return false
	}
	place := r.place(&v.Subject)
	all := r.votes[v.Kind]
	all.casts[seat] = cast{count: place, signature: v.Bytes}
	all.voted[seat/64] |= 1 << (seat % 64)
	c := &r.counts[place-1]
	c.weight += w.At(seat).Weight
	c.anchors++
	return rule.Met(c.weight, w.Total(), c.anchors)
}

// place returns the place of a subject among the counts, from 1.
func (r *round) place(s *Subject) int {
	for i := range r.counts {
		if r.counts[i].subject == *s {
			return i + 1
		}
	}
	r.counts = append(r.counts, count{subject: *s})
	return len(r.counts)
}

// certificate gathers the signatures held for a subject, in the order of anchors.
func (r *round) certificate(s Subject, w *Weights) Certificate {
	place := r.place(&s)
	sigs := make([]Signature, 0, r.counts[place-1].anchors)
	if all := r.votes[s.Kind]; all != nil {
		for seat, v := range all.casts {
			if v.count == place {
				sigs = append(sigs, Signature{Anchor: w.At(seat).Anchor, Bytes: v.signature})
			}
		}
	}
	return Certificate{Subject: s, Signatures: sigs}
}

// offer adds to o the certificate of a kind or, without one, the votes for it if they are asked for.
func (r *round) offer(o *Offer, k Kind, w *Weights, votes bool) {
	if r.has(k) {
		o.Certificates = append(o.Certificates, r.cert(k))
		return
	}
	all := r.votes[k]
	if !votes || all == nil {
		return
	}
	for i, word := range all.voted { // few may have voted, and many may ask for the votes
		for ; word != 0; word &= word - 1 {
			seat := 64*i + bits.TrailingZeros64(word)
			v := &all.casts[seat]
			signature := Signature{Anchor: w.At(seat).Anchor, Bytes: v.signature}
			o.Votes = append(o.Votes, Vote{r.counts[v.count-1].subject, signature})
		}
	}
}
