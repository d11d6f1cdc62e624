package node

import (
	"slices"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/scope"
)

// Tell is what an honest anchor whose state is s answers to ForeignLook, ForeignResolve (of the newest
// version), ForeignRefer, ForeignEvents and ForeignOutcome, once it may: what a node does around it is to hold
// those who ask to their budgets, and to make the state new enough. The error is why it answers nothing.
func Tell(s *scope.State, h History, ask *ForeignAsk) (a ForeignAnswer, err error) {
	e, err := s.Epoch()
	if err != nil {
		return a, err
	}
	head := s.Head()
	a.Epoch = e.Number
	a.said(&head)
	a.Body, err = tell(s, h, ask)
	if ask.pins() && ask.At > 0 {
		a.Revision = ask.At
		if head.Closed() < ask.At {
			err = scope.ErrFutureRevision
		}
	}
	if a.Failure = scope.FailureIn(err); a.Failure != "" {
		err = nil
	}
	return a, err
}

func tell(s *scope.State, h History, ask *ForeignAsk) ([]byte, error) {
	switch ask.Kind {
	case ForeignLook:
		var t scope.Txn
		err := canon.Decode(ask.Body, &t)
		if err == nil {
			err = owns(s, t.Ranges)
		}
		if err != nil {
			return nil, err
		}
		return tellLook(s, &t, ask.At)
	case ForeignResolve:
		var x ForeignName
		err := canon.Decode(ask.Body, &x)
		if err == nil {
			err = owns(s, Keys(x.Key))
		}
		if err != nil {
			return nil, err
		}
		r, err := named(s, x.Key)
		if err != nil && r.Moved == nil {
			return nil, err
		}
		return canon.Encode(r), err
	case ForeignRefer:
		var keys ForeignKeys
		if err := canon.Decode(ask.Body, &keys); err != nil {
			return nil, err
		}
		all, err := tellReferrals(s, h, &keys)
		return canon.Encode(all), err
	case ForeignEvents:
		var x foreignWatch
		if err := canon.Decode(ask.Body, &x); err != nil {
			return nil, err
		}
		return tellEvents(s, &x, ask.At)
	case ForeignOutcome:
		return tellOutcome(s, ask.Body)
	}
	return nil, errUnasked
}

// tellLook is what a transaction that only reads finds, without what differs between moments.
func tellLook(s *scope.State, t *scope.Txn, at int64) ([]byte, error) {
	got, err := lookAt(s, t, at)
	if err != nil {
		return nil, err
	}
	got.Revision = 0
	for i := range got.Responses {
		got.Responses[i].Range.Revision = 0
	}
	return canon.Encode(got), nil
}

// tellReferrals are the referrals for keys that the scope has delegated. Errors wrap
// errUncovered if one of them cannot be proven yet.
func tellReferrals(s *scope.State, h History, keys *ForeignKeys) (all []scope.Referral, err error) {
	var touched []scope.Delegation
	for _, x := range keys.Ranges {
		some, err := s.Touching(x.Key, x.End)
		if err != nil {
			return nil, err
		}
		for _, d := range some {
			if !slices.ContainsFunc(touched, func(x scope.Delegation) bool { return x.Child == d.Child }) && len(touched) < foreignReferrals {
				touched = append(touched, d)
			}
		}
	}
	for _, d := range touched {
		head, err := h.cover(s.Head().Height, d.Height)
		if err != nil {
			return nil, err
		}
		r, err := scope.NewReferral(head, s, d.Prefix)
		if err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, nil
}

// tellOutcome is what became of a mutation, as a foreignReceipt without responses; nothing
// if it is not on record.
func tellOutcome(s *scope.State, id []byte) ([]byte, error) {
	if len(id) != len(aweigh.Hash{}) {
		return nil, errUnasked
	}
	was, ok, err := s.Outcome(aweigh.Hash(id))
	if err != nil || !ok {
		return nil, err
	}
	return EncodeReceipts([]Receipt{{
		Outcome: scope.Outcome{Mutation: aweigh.Hash(id), Code: was.Code, Reason: was.Reason, Revision: was.Revision, Succeeded: was.Succeeded},
		Height:  was.Height, Epoch: s.Head().Epoch,
	}}), nil
}

// owns says why some of the keys are not the scope's own.
func owns(s *scope.State, ranges Ranges) (err error) {
	ranges(func(key, end []byte) bool {
		var touched []scope.Delegation
		if touched, err = s.Touching(key, end); err == nil && len(touched) > 0 {
			err = scope.ErrElsewhere
		}
		return err == nil
	})
	return err
}
