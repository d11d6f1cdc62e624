package sim

import (
	"math/rand/v2"
	"slices"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/internal/must"
	"github.com/aweigh/aweigh/node/referral"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
)

// mislead answers a visitor. A coalition gives the same answer to all visitors with one question
// at about one time.
func (l *liar) mislead(v *visitor, ask *referral.Question, truth referral.Answer, err error, answer func(referral.Answer, error)) {
	sum := aweigh.Sum(ask.Body, []byte{ask.Kind, byte(l.index), byte(l.w.Now() / tickEvery)})
	r := rand.New(rand.NewPCG(uint64(sum[0])|uint64(sum[1])<<8|uint64(sum[2])<<16, l.w.Scenario.Seed))
	if r.Int64N(million) >= int64(l.role.Rate) {
		answer(truth, err)
		return
	}
	what := "a false answer"
	a := truth
	lie := r.IntN(9)
	if ask.Kind == referral.AskReferrals {
		lie *= r.IntN(2)
	}
	switch lie {
	case 1:
		l.told("mislead", "visitor %d gets no answer", v.id)
		return
	case 2:
		what = "an answer of long ago"
		a = l.ago(ask, truth)
	case 3:
		what = "a later epoch"
		a.Epoch += 1 + aweigh.Epoch(r.IntN(3))
	case 4:
		what = "an earlier epoch"
		a.Epoch -= min(a.Epoch, 1)
	case 5:
		what = "that another scope decides"
		a.Failure, a.Body = scope.FailureIn(scope.ErrElsewhere), nil
	case 6:
		what = "the truth, as of the far future"
		a.Revision += 1 << 40
		a.Height += 1000
	case 7:
		what = "the truth, as of before all time"
		a.Revision, a.Height = 1, 1
	case 8:
		what = "a false hash"
		if !ask.Brief {
			what = "a hash that was not asked for"
		}
		a.Body, a.Digest = nil, sum[:]
	default:
		a.Body = l.forged(ask, truth.Body, r)
		if ask.Kind != referral.AskReferrals {
			a.Failure = ""
		}
		if r.IntN(2) == 0 {
			a.Revision += int64(r.IntN(3))
		}
	}
	l.told("mislead", "visitor %d gets %s", v.id, what)
	answer(a, nil)
}

// ago is the first answer that the coalition gave to a question.
func (l *liar) ago(ask *referral.Question, truth referral.Answer) referral.Answer {
	key := aweigh.Sum(canon.Encode(*ask))
	if l.answers == nil {
		l.answers = make(map[aweigh.Hash]referral.Answer)
	}
	was, ok := l.answers[key]
	if !ok {
		l.answers[key], was = truth, truth
	}
	was.Revision = truth.Revision
	return was
}

// forged is an answer that no honest node gives.
func (l *liar) forged(ask *referral.Question, truth []byte, r *rand.Rand) []byte {
	kv := scope.KeyValue{Key: []byte("/forged"), Value: []byte("forged"), Version: 1, CreateRevision: 1, ModRevision: 1}
	switch ask.Kind {
	case referral.AskLook:
		var x referral.Looked
		if canon.Decode(truth, &x) == nil && len(x.Responses) == 1 && len(x.Responses[0].Range.Kvs) == 1 && r.IntN(2) == 0 {
			kv = x.Responses[0].Range.Kvs[0]
			kv.Value = []byte("forged")
		}
		x = referral.Looked{Succeeded: true, Responses: []scope.Response{{Kind: scope.OpRange, Range: scope.RangeResult{Kvs: []scope.KeyValue{kv}, Count: 1}}}}
		return canon.Encode(x)
	case referral.AskResolve:
		return canon.Encode(referral.Resolved{Kv: kv, Key: kv.Key, Number: 1, Newest: 1, Claims: true})
	case referral.AskSubmit:
		all, err := referral.DecodeReceipts(truth, aweigh.ScopeID{})
		if err != nil {
			return nil
		}
		for i := range all {
			all[i].Revision++
			all[i].Height++
		}
		return referral.EncodeReceipts(all)
	case referral.AskReferrals:
		return l.misrefer(truth, r)
	}
	return nil
}

// misrefer changes referrals: to a scope that the coalition governs, to the one that refers, or
// to a shorter prefix, with all that was proven of the true one.
func (l *liar) misrefer(truth []byte, r *rand.Rand) []byte {
	all, err := referral.DecodeReferrals(truth)
	if err != nil {
		return truth
	}
	for i := range all {
		child := &all[i].Child
		d := *child.Descent
		child.Descent = &d
		switch r.IntN(4) {
		case 0:
			child.Anchors = slices.Clone(child.Anchors)
			seed := make([]byte, 32)
			seed[0] = byte(l.index)
			key, err := votes.KeyFromSeed(votes.Ed25519, seed)
			must.OK(err, "making a key")
			child.Anchors[0].Key = key.Public()
		case 1:
			d.Prefix = slices.Clone(d.Prefix[:max(1, len(d.Prefix)-1)])
		case 2:
			d.Parent = child.Hash()
		default:
			if p := l.w.Genesis; p.Descent != nil {
				*child = p
			} else {
				d.Entry++
			}
		}
		l.w.watch.reach("forged referral")
	}
	return canon.Encode(all)
}
