package votes

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/quorum"
)

// Approver is a key that the policy names beside the anchors: of a person or a
// program that votes on motions.
type Approver struct {
	_        struct{} `cbor:",toarray"`
	ID       aweigh.Hash
	Weight   uint64 // may be zero for an approver that must sign
	Required bool   // without this approver's approval nothing is carried
}

// MaxApprovers bounds the approvers of an Electorate.
const MaxApprovers = 1024

// Electorate holds the voters on a motion and their weights, fixed when the motion opens (P28): the anchors of that
// epoch's roster, and the approvers. It is immutable.
type Electorate struct {
	voters   []elector // by ID
	total    uint64
	anchors  int
	required int
}

type elector struct {
	Approver
	anchor bool
}

// NewElectorate is made of the anchors and the approvers, in any order. An
// anchor that is an approver as well votes once, with both weights. It fails
// with ErrMalformed if an approver stands twice or counts nothing, or if there
// are too many, or with no weight or more than quorum.MaxTotal together.
func NewElectorate(anchors quorum.Weights, approvers ...Approver) (Electorate, error) {
	if len(approvers) > MaxApprovers {
		return Electorate{}, fmt.Errorf("%w: %d approvers, at most %d are taken", ErrMalformed, len(approvers), MaxApprovers)
	}
	e := Electorate{total: anchors.Total(), anchors: anchors.Len()}
	for s := range anchors.All() {
		e.voters = append(e.voters, elector{Approver{ID: s.Anchor, Weight: s.Weight}, true})
	}
	sorted := slices.SortedFunc(slices.Values(approvers), func(a, b Approver) int { return bytes.Compare(a.ID[:], b.ID[:]) })
	for i, a := range sorted {
		if i > 0 && sorted[i-1].ID == a.ID {
			return Electorate{}, fmt.Errorf("%w: approver %s stands twice", ErrMalformed, a.ID.Short())
		}
		if a.Weight == 0 && !a.Required {
			return Electorate{}, fmt.Errorf("%w: approver %s has no weight and need not sign", ErrMalformed, a.ID.Short())
		}
		if a.Weight > quorum.MaxTotal-e.total {
			return Electorate{}, fmt.Errorf("%w: weights of more than %d together", ErrMalformed, uint64(quorum.MaxTotal))
		}
		e.total += a.Weight
		if a.Required {
			e.required++
		}
		at, found := e.seat(a.ID)
		if found {
			e.voters[at].Weight += a.Weight
			e.voters[at].Required = a.Required
		} else {
			e.voters = slices.Insert(e.voters, at, elector{a, false})
		}
	}
	if e.total == 0 {
		return Electorate{}, fmt.Errorf("%w: an electorate without weight", ErrMalformed)
	}
	return e, nil
}

// Total is the weight of all voters.
func (e Electorate) Total() uint64 { return e.total }

// Len is the number of voters.
func (e Electorate) Len() int { return len(e.voters) }

// Of is a voter's weight, and whether it is one.
func (e Electorate) Of(voter aweigh.Hash) (weight uint64, ok bool) {
	at, ok := e.seat(voter)
	if !ok {
		return 0, false
	}
	return e.voters[at].Weight, true
}

func (e *Electorate) seat(voter aweigh.Hash) (int, bool) {
	return slices.BinarySearchFunc(e.voters, voter, func(v elector, id aweigh.Hash) int { return bytes.Compare(v.ID[:], id[:]) })
}

// Carriable reports whether the voters could carry a motion under the rule if all approved. A policy should not
// require more.
func (e Electorate) Carriable(rule quorum.Rule) bool {
	return e.verdict(rule, e.all(), part{}) == Carried
}

// part is some of the voters: their weight, and how many are anchors, and
// required.
type part struct {
	weight            uint64
	anchors, required int
}

func (p *part) add(v *elector) {
	p.weight += v.Weight
	if v.anchor {
		p.anchors++
	}
	if v.Required {
		p.required++
	}
}

func (e *Electorate) all() part { return part{e.total, e.anchors, e.required} }

// verdict returns what follows if the voters in approve approve, and those in lost never can because they rejected or
// equivocated. The measure is always the whole (P4).
func (e *Electorate) verdict(rule quorum.Rule, approve, lost part) Verdict {
	switch {
	case approve.required == e.required && rule.Met(approve.weight, e.total, approve.anchors):
		return Carried
	case lost.required > 0 || !rule.Met(e.total-lost.weight, e.total, e.anchors-lost.anchors):
		return Rejected
	}
	return Open
}
