package show

import (
	"bytes"
	"strings"
	"testing"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/scope"
)

// TestQuotasShowWhatIsUsed: each bound with what is used of it, and what is counted without a bound.
func TestQuotasShowWhatIsUsed(t *testing.T) {
	a := scope.Author{Name: "a", Who: scope.Anyone, Quota: scope.Quota{Rate: 5, Bytes: 1 << 20, Leases: 10}}
	used := []*aweighv1.Usage{{Name: "a", Made: 3, Bytes: 1500, Leases: 1, Motions: 2}}
	for format, want := range map[Format]string{ // order-free: each for itself
		Table: "3 of 50 changes, 5 a second; 1500 bytes of 1MiB; 1 of 10 leases; 2 open motions without a bound",
		JSON:  `"quota": { "rate": 5, "burst": 50, "bytes": 1048576, "leases": 10 }, "used": { "changes": 3, "bytes": 1500, "leases": 1, "motions": 2 }`,
	} {
		var out bytes.Buffer
		if err := (Printer{Out: &out, Format: format}).Authors(&aweighv1.Header{}, []scope.Author{a}, used); err != nil {
			t.Fatal(err)
		}
		if text := strings.Join(strings.Fields(out.String()), " "); !strings.Contains(text, want) {
			t.Errorf("%s, want %s", text, want)
		}
	}
	var out bytes.Buffer
	if err := (Printer{Out: &out, Format: Table}).Authors(&aweighv1.Header{}, []scope.Author{{Name: "b", Who: scope.Anyone}}, used); err != nil || strings.Contains(out.String(), "QUOTA") {
		t.Errorf("%v: %s", err, out.String())
	}
}
