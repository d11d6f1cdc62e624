package show

import (
	"strings"
	"testing"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/internal/vary"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/trust"
)

// TestReasonsNameWhatCommandsTake: a change of trust names a motion by its ID, and an anchor by its name.
func TestReasonsNameWhatCommandsTake(t *testing.T) {
	sponsor, anchor := vary.Key(1).Public().ID(), vary.Key(2).Public().ID()
	p := scope.OpenPolicy(quorum.BFT).Trust
	d := scope.Decision{Kind: scope.Admit, Sponsor: sponsor}
	decision := d.ID()
	seated := trust.Evidence{Anchor: sponsor, Kind: trust.Founded, Score: p.Initial}
	admitted := trust.Evidence{Anchor: anchor, Kind: trust.Admitted, Sponsor: sponsor, Proof: decision, Epoch: 1, Height: 1}
	_, changes := trust.Ledger{}.ApplyExplained(p, seated, admitted)
	kept := changes[len(changes)-1].Reason

	r := &aweighv1.TrustResponse{Anchors: []*aweighv1.Standing{{Id: sponsor[:], Name: "oslo"}}}
	m := &aweighv1.Motion{Id: []byte{1, 2, 3, 4, 5}, Decision: decision[:]}
	if got := NamesOf([]*aweighv1.Motion{m}, r).reason(kept); !strings.HasPrefix(got, "admitted: motion 01020304, sponsor oslo, ") {
		t.Errorf("%q became %q", kept, got)
	}
	warned := trust.Evidence{Anchor: sponsor, Kind: trust.Warned, Proof: decision, By: decision}
	_, changes = trust.Ledger{}.ApplyExplained(p, seated, warned)
	if text := changes[1].Reason; NamesOf([]*aweighv1.Motion{m}, r).reason(text) != text || !strings.Contains(text, "motion "+decision.Short()) {
		t.Errorf("a warning: %q", text)
	}
	if got := NamesOf(nil, r).reason(kept); !strings.HasPrefix(got, "admitted: decision "+decision.Short()+", ") {
		t.Errorf("without a record: %q", got)
	}
}
