package referral

import (
	"slices"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/scope"
)

// Tell returns the answer of an honest anchor with state s to AskLook, AskResolve (of the newest version),
// AskReferrals, AskEvents or AskOutcome. The caller enforces the budget of the asker, and makes the state new enough.
// The error says why there is no answer.
func Tell(s *scope.State, h machine.History, ask *Question) (a Answer, err error) {
	e, err := s.Epoch()
	if err != nil {
		return a, err
	}
	head := s.Head()
	a.Epoch = e.Number
	a.Said(&head)
	a.Body, err = tell(s, h, ask)
	if ask.Pins() && ask.At > 0 {
		a.Revision = ask.At
		if head.ClosedTimestamp() < ask.At {
			err = scope.ErrFutureRevision
		}
	}
	if a.Failure = scope.FailureIn(err); a.Failure != "" {
		err = nil
	}
	return a, err
}

func tell(s *scope.State, h machine.History, ask *Question) ([]byte, error) {
	switch ask.Kind {
	case AskLook:
		var t scope.Txn
		err := canon.Decode(ask.Body, &t)
		if err == nil {
			err = Owns(s, t.Ranges)
		}
		if err != nil {
			return nil, err
		}
		return TellLook(s, &t, ask.At)
	case AskResolve:
		var x Name
		err := canon.Decode(ask.Body, &x)
		if err == nil {
			err = Owns(s, Keys(x.Key))
		}
		if err != nil {
			return nil, err
		}
		r, err := Named(s, x.Key)
		if err != nil && r.Moved == nil {
			return nil, err
		}
		return canon.Encode(r), err
	case AskReferrals:
		var keys RangeList
		if err := canon.Decode(ask.Body, &keys); err != nil {
			return nil, err
		}
		all, err := TellReferrals(s, h, &keys)
		return canon.Encode(all), err
	case AskEvents:
		var x Watch
		if err := canon.Decode(ask.Body, &x); err != nil {
			return nil, err
		}
		return TellEvents(s, &x, ask.At)
	case AskOutcome:
		return TellOutcome(s, ask.Body)
	}
	return nil, ErrUnasked
}

// TellLook returns the encoded result of a transaction that only reads, without what differs between revisions.
func TellLook(s *scope.State, t *scope.Txn, at int64) ([]byte, error) {
	got, err := Look(s, t, at)
	if err != nil {
		return nil, err
	}
	got.Revision = 0
	for i := range got.Responses {
		got.Responses[i].Range.Revision = 0
	}
	return canon.Encode(got), nil
}

// TellReferrals returns the referrals for those keys that the scope has delegated, at most maxReferrals. Errors wrap
// machine.ErrUncovered if one of them cannot be proven yet.
func TellReferrals(s *scope.State, h machine.History, keys *RangeList) (all []scope.Referral, err error) {
	var touched []scope.Delegation
	for _, x := range keys.Ranges {
		some, err := s.Touching(x.Key, x.End)
		if err != nil {
			return nil, err
		}
		for _, d := range some {
			if !slices.ContainsFunc(touched, func(x scope.Delegation) bool { return x.Child == d.Child }) && len(touched) < maxReferrals {
				touched = append(touched, d)
			}
		}
	}
	for _, d := range touched {
		head, err := h.Cover(s.Head().Height, d.Height)
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

// TellOutcome returns the outcome of a mutation as an encoded list of one Receipt, without responses; nil if the
// mutation is not on record.
func TellOutcome(s *scope.State, id []byte) ([]byte, error) {
	if len(id) != len(aweigh.Hash{}) {
		return nil, ErrUnasked
	}
	was, ok, err := s.Outcome(aweigh.Hash(id))
	if err != nil || !ok {
		return nil, err
	}
	return EncodeReceipts([]machine.Receipt{{
		Outcome: scope.Outcome{Mutation: aweigh.Hash(id), Code: was.Code, Reason: was.Reason, Revision: was.Revision, Succeeded: was.Succeeded},
		Height:  was.Height, Epoch: s.Head().Epoch,
	}}), nil
}

// Owns returns scope.ErrElsewhere if the scope has delegated some of the keys, or is closed.
func Owns(s *scope.State, ranges Ranges) (err error) {
	if s.IsClosed() {
		return scope.ErrElsewhere
	}
	ranges(func(key, end []byte) bool {
		var touched []scope.Delegation
		if touched, err = s.Touching(key, end); err == nil && len(touched) > 0 {
			err = scope.ErrElsewhere
		}
		return err == nil
	})
	return err
}
