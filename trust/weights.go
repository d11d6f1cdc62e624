package trust

import (
	"errors"
	"fmt"
	"strings"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/quorum"
)

// ErrRoster is wrapped by the error of a ledger in which no anchor has weight in
// an epoch: all have left, are barred or on probation. A scope that would come
// to this keeps the roster that it has.
var ErrRoster = errors.New("trust: no anchor has weight")

// Share states how an anchor came by its weight in an epoch.
type Share struct {
	Anchor aweigh.AnchorID
	Raw    uint64 // by score and blame alone; 0 on probation
	Capped uint64 // after the caps
	Weight uint64 // after the bound on changes: the weight in force
	Why    string // one line for people
}

// Next is NextExplained without the explanation.
func (l Ledger) Next(p Params, epoch aweigh.Epoch, before quorum.Weights) (quorum.Weights, error) {
	w, _, err := l.NextExplained(p, epoch, before)
	return w, err
}

// NextExplained is the weights of an epoch, before being those of the epoch
// before it, and a Share for each anchor of the roster, in the order of anchors.
// Those on probation or standby have a Share, but are absent from the weights.
//
// Each other anchor in the roster has its Params.claim. Then the caps:
// no anchor holds more than Params.ShareOf of the total, and those that one sponsor
// brought in no more than Params.Sponsored together, without the sponsor's own
// weight. Then the sum of changes against before is limited to Params.Churn of its
// total, all in the same proportion. A barred or retired anchor loses its weight at
// once, which does not count as a change, and an empty before, as for the genesis,
// bounds nothing.
//
// The order of precedence where two rules conflict: a weight is at least 1; then
// comes the share of one anchor, which always holds exactly; then the cap of
// sponsors, which gives way only where too few others weigh (by no more than they
// lack, in thousandths); then the bound on changes, which is exceeded only where a
// cap, or a first weight of 1, demands it, and then by no more than they demand.
//
// The error wraps ErrParams, ErrRoster, or quorum.ErrWeights if the sum is too
// large.
func (l Ledger) NextExplained(p Params, epoch aweigh.Epoch, before quorum.Weights) (quorum.Weights, []Share, error) {
	if err := p.Check(); err != nil {
		return quorum.Weights{}, nil, err
	}
	var (
		shares  []Share
		claims  []claim
		anchors []aweigh.AnchorID
		groups  = make(map[aweigh.AnchorID]int)
		total   uint64
		way     weightPath
	)
	for s := range l.Seated() {
		if s.Weighs > epoch {
			shares = append(shares, Share{Anchor: s.Anchor, Why: fmt.Sprintf("on probation until epoch %d", s.Weighs)})
			continue
		}
		if s.Standby {
			shares = append(shares, Share{Anchor: s.Anchor, Why: p.Group.whyStandby(s)})
			continue
		}
		c := claim{p.claim(s), -1}
		if !s.Sponsor.IsZero() {
			g, ok := groups[s.Sponsor]
			if !ok {
				g = len(groups)
				groups[s.Sponsor] = g
			}
			c.group = g
		}
		if total += c.raw; total > quorum.MaxTotal {
			return quorum.Weights{}, nil, fmt.Errorf("trust: %w: the sum exceeds %d; lower the ceiling", quorum.ErrWeights, uint64(quorum.MaxTotal))
		}
		claims, anchors = append(claims, c), append(anchors, s.Anchor)
		way.from = append(way.from, before.Of(s.Anchor))
		shares = append(shares, Share{Anchor: s.Anchor, Raw: c.raw, Why: p.whyClaim(s)})
	}
	if len(claims) == 0 {
		return quorum.Weights{}, nil, fmt.Errorf("%w in epoch %d, of %d in the roster; admit or readmit anchors first", ErrRoster, epoch, len(shares))
	}
	way.claims = claims
	way.caps, way.to = capsOf(p, claims)
	weights := way.to
	if before.Len() > 0 {
		weights = way.walk(p.Churn.of(before.Total()))
	}
	out := make([]quorum.Share, len(claims))
	for i, at := 0, 0; at < len(shares); at++ {
		if s := &shares[at]; s.Raw > 0 {
			s.Capped, s.Weight = way.to[i], weights[i]
			s.Why += way.why(p, i, weights[i])
			out[i] = quorum.Share{Anchor: anchors[i], Weight: weights[i]}
			i++
		}
	}
	w, err := quorum.NewWeights(out...)
	if err != nil {
		return w, nil, fmt.Errorf("trust: weights of %d anchors: %w", len(out), err)
	}
	return w, shares, nil
}

// whyClaim is how an anchor comes by its claim.
func (p Params) whyClaim(s Standing) string {
	if less := p.Weight(s.Score) - p.claim(s); less > 0 {
		return fmt.Sprintf("score %d, less %d for blame %d", s.Score, less, s.Blame)
	}
	return fmt.Sprintf("score %d", s.Score)
}

// why reports which rules stand between a claim and a weight.
func (y weightPath) why(p Params, i int, weight uint64) string {
	var b strings.Builder
	c := y.claims[i]
	if lid := y.caps.share; y.to[i] < c.raw {
		switch {
		case uint64(lid.Num)*uint64(len(y.to)) == uint64(lid.Den):
			fmt.Fprintf(&b, ", %d anchors weigh the same", len(y.to))
		case c.group < 0 || y.to[i] >= lid.of(sum(y.to)):
			fmt.Fprintf(&b, ", no anchor holds more than %s", lid)
		case y.caps.sponsored != p.Sponsored:
			fmt.Fprintf(&b, ", one sponsor's anchors hold %s, for want of others", y.caps.sponsored)
		default:
			fmt.Fprintf(&b, ", one sponsor's anchors hold no more than %s", y.caps.sponsored)
		}
	}
	if weight != y.to[i] {
		fmt.Fprintf(&b, ", from %d on the way to %d", y.from[i], y.to[i])
	}
	return b.String()
}
