package scope

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
)

// TestP49PatientMutationsOpenMotions: a patient mutation opens a motion, for which it may be valid for longer than
// others, or is on record as failed.
func TestP49PatientMutationsOpenMotions(t *testing.T) {
	w := newAssembly(t, 4, func(p *Policy) { p.Limits.Pending, p.EpochTime = 30*24*time.Hour, mostEpoch })
	valid := func(m Mutation, span time.Duration) Mutation {
		m.ValidUntil, m.Patient = w.now.Add(span), true
		return m
	}
	const week, minute = 7 * 24 * time.Hour, time.Minute
	id := w.propose(valid(w.put("/secrets/a", "1"), week))
	failing := w.ops(put("/secrets/b", "1"))
	failing.Content = canon.Encode(Txn{Compare: []Compare{{Key: []byte("/none"), Target: OnVersion, Relation: Equal, Number: 7}},
		Success: []Op{put("/secrets/b", "1")}})
	for name, m := range map[string]Mutation{ // order-free: none of them changes anything
		"without approval":                valid(w.put("/free", "1"), week),
		"without approval, for a minute":  valid(w.put("/free", "2"), minute),
		"a branch that takes no approval": valid(failing, week),
	} {
		// Its leader may date the block as far back as it likes: the outcome is the same.
		if out := w.step(m).Outcomes[0]; out.Code != Failed || !errors.Is(Failure(out.Reason), ErrPatient) {
			t.Errorf("%s: %s %s", name, out.Code, out.Reason)
		}
	}
	for name, m := range map[string]Mutation{ // order-free: none of them changes anything
		"patient, for longer than the policy allows":     valid(w.put("/secrets/c", "1"), 31*24*time.Hour),
		"not patient, for longer than the policy allows": func() Mutation { m := valid(w.put("/secrets/d", "1"), week); m.Patient = false; return m }(),
	} {
		if out := w.step(m).Outcomes[0]; out.Code != Refused {
			t.Errorf("%s: %s", name, out.Code)
		}
	}

	// The receipt lasts as long as the mutation, though the motion closes long before.
	w.cast(w.approve(id, 3))
	if fate := w.fate(id); fate != "carried" {
		t.Fatalf("the motion is %s", fate)
	}
	var first Mutation
	m, _, err := w.state.Motion(id)
	if err != nil || first.decode(m.Mutation) != nil {
		t.Fatal(err)
	}
	w.now = w.now.Add(6 * 24 * time.Hour)
	if out := w.step(first).Outcomes[0]; out.Code != Pending || out.Mutation != aweigh.Hash(id) {
		t.Errorf("six days later: %s", out.Code)
	}
	if r, err := w.state.Range([]byte("/secrets/a"), nil, Range{}); err != nil || len(r.Kvs) != 1 || r.Kvs[0].Version != 1 {
		t.Errorf("it was applied as %+v, %v", r.Kvs, err)
	}
	w.now = first.ValidUntil.Add(time.Hour)
	if out := w.step(first).Outcomes[0]; out.Code != Expired {
		t.Errorf("when its time is over: %s", out.Code)
	}
}

// TestPatientMutationsStandAlone: no bundle mixes a patient mutation with others, and none but changes of keys is
// patient.
func TestPatientMutationsStandAlone(t *testing.T) {
	w := newAssembly(t, 4)
	patient := func(m Mutation) Mutation {
		m.Patient = true
		return m
	}
	for want, all := range map[string][]Mutation{ // order-free: each is signed alone
		"not alone in its bundle": {w.put("/secrets/a", "1"), patient(w.put("/secrets/b", "1"))},
		"no change of keys":       {patient(w.compaction(1))},
	} {
		if _, err := Sign(w.author, w.g.Policy.Limits, all...); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}
