package show

import (
	"fmt"
	"slices"
	"strings"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/internal/policytext"
	"github.com/aweigh/aweigh/scope"
)

type quotaJSON struct {
	Rate    int64 `json:"rate,omitempty"`  // changes a second
	Burst   int64 `json:"burst,omitempty"` // that can be saved up
	Bytes   int64 `json:"bytes,omitempty"`
	Leases  int64 `json:"leases,omitempty"`
	Motions int64 `json:"motions,omitempty"`
}

type usageJSON struct {
	Changes int64 `json:"changes"` // of the burst
	Bytes   int64 `json:"bytes"`
	Leases  int64 `json:"leases"`
	Motions int64 `json:"motions"`
}

func quotaOf(a *scope.Author) *quotaJSON {
	q := &a.Quota
	if *q == (scope.Quota{}) {
		return nil
	}
	return &quotaJSON{Rate: q.Rate, Burst: q.Burst(), Bytes: q.Bytes, Leases: q.Leases, Motions: q.Motions}
}

// usageOf is what the entry with a name has, nil if nothing counts.
func usageOf(all []*aweighv1.Usage, name string) *aweighv1.Usage {
	i := slices.IndexFunc(all, func(u *aweighv1.Usage) bool { return u.Name == name })
	if i < 0 {
		return nil
	}
	return all[i]
}

func usedOf(a *scope.Author, u *aweighv1.Usage) *usageJSON {
	if u == nil && a.Quota == (scope.Quota{}) {
		return nil
	}
	return &usageJSON{Changes: u.GetMade(), Bytes: u.GetBytes(), Leases: u.GetLeases(), Motions: u.GetMotions()}
}

// quotaText is a quota with what is used of it, like: 3 of 50 changes, 5 a second; 12KiB of 1MiB.
func quotaText(a *scope.Author, u *aweighv1.Usage) string {
	var parts []string
	q := &a.Quota
	if q.Rate > 0 {
		parts = append(parts, fmt.Sprintf("%d of %d changes, %d a second", u.GetMade(), q.Burst(), q.Rate))
	}
	count := func(used, most int64, text func(int64) string, what string) {
		switch {
		case most > 0:
			parts = append(parts, text(used)+" of "+text(most)+what)
		case used > 0:
			parts = append(parts, text(used)+what+" without a bound")
		}
	}
	number := func(n int64) string { return fmt.Sprint(n) }
	size := func(n int64) string {
		if text := policytext.Size(n); text != fmt.Sprint(n) {
			return text
		}
		return fmt.Sprint(n, " bytes")
	}
	count(u.GetBytes(), q.Bytes, size, "")
	count(u.GetLeases(), q.Leases, number, " leases")
	count(u.GetMotions(), q.Motions, number, " open motions")
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, "; ")
}
