package api

import (
	"context"
	"fmt"

	"connectrpc.com/connect"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/node"
	"github.com/aweigh/aweigh/node/referral"
	"github.com/aweigh/aweigh/scope"
)

// foreseeing is the part of a node that the API needs for forecasts.
type foreseeing interface {
	Foresee(ctx context.Context, keys referral.Ranges, c node.Intended, linearizable bool) (scope.Forecast, error)
}

// foreseeingDecisions is likewise for decisions.
type foreseeingDecisions interface {
	ForeseeDecision(ctx context.Context, d scope.Decision, linearizable bool) (scope.Forecast, error)
}

// Forecast implements aweighv1connect.NodeHandler.
func (s *service) Forecast(ctx context.Context, req *connect.Request[aweighv1.ForecastRequest]) (*connect.Response[aweighv1.ForecastResponse], error) {
	keys, c, err := changeOf(req.Msg)
	if n := len(req.Msg.Author); err == nil && n > 0 && n != len(c.Author) {
		err = fmt.Errorf("%w: an author is the hash of a key, of %d bytes, not %d", errRequest, len(c.Author), n)
	}
	if err != nil {
		return nil, problem(err)
	}
	copy(c.Author[:], req.Msg.Author)
	ctx, cancel := patient(ctx)
	defer cancel()
	var f scope.Forecast
	if d, is := c.Content.(scope.Decision); is {
		f, err = s.at.ForeseeDecision(ctx, d, !req.Msg.Serializable)
	} else {
		f, err = s.route.Foresee(ctx, keys, c, !req.Msg.Serializable)
	}
	if err != nil {
		return nil, problem(err)
	}
	out := &aweighv1.ForecastResponse{
		Header: s.named(s.read(f.Head, !req.Msg.Serializable)), Outcome: f.Outcome.Code.String(), Reason: f.Outcome.Reason,
		State: f.Head.Digest[:], Succeeded: f.Outcome.Succeeded,
	}
	if f.Impact != nil {
		out.Impact, out.ImpactHash = f.Impact.Encode(), bytesOf(f.Impact.Hash())
	}
	if mo := f.Motion; mo != nil {
		if out.Outcome = scope.Pending.String(); mo.Height <= f.Head.Height {
			out.Motion = bytesOf(mo.ID())
		}
		out.Subject, out.Rule, out.Succeeded = mo.Subject(), mo.Approval.String(), mo.Success
		for i := range mo.Voters {
			v := &mo.Voters[i]
			out.Voters = append(out.Voters, &aweighv1.Voter{Id: bytesOf(v.Key.ID()), Name: v.Name, Weight: v.Weight, Anchor: v.Anchor, Required: v.Required})
		}
	}
	return connect.NewResponse(out), nil
}

// changeOf is the change that a forecast is about, and the keys by which its scope is found.
func changeOf(m *aweighv1.ForecastRequest) (keys referral.Ranges, c node.Intended, err error) {
	var t scope.Txn
	c.Class = scope.Write
	switch x := m.Change.(type) {
	case *aweighv1.ForecastRequest_Put:
		t = single(putOf(x.Put))
	case *aweighv1.ForecastRequest_Delete:
		t = single(deleteOf(x.Delete))
	case *aweighv1.ForecastRequest_Txn:
		t, err = TxnOf(x.Txn)
	case *aweighv1.ForecastRequest_Name:
		var n scope.Naming
		n, err = NamingOf(x.Name)
		c.Class, c.Content = scope.Name, n
		return referral.Keys(n.Key, n.To, n.From), c, err
	case *aweighv1.ForecastRequest_Decision:
		var d scope.Decision
		if err = canon.Decode(x.Decision, &d); err != nil {
			err = fmt.Errorf("%w: decision: %w", errRequest, err)
		}
		c.Class, c.Content = scope.Govern, d
		return nil, c, err
	default:
		err = fmt.Errorf("%w: a forecast is about one change", errRequest)
	}
	c.Content = t
	return t.Ranges, c, err
}
