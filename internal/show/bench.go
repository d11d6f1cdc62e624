package show

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/aweigh/aweigh/internal/bench"
)

// quantiles are those shown, in parts per thousand.
var quantiles = []struct {
	name string
	per  uint64
}{{"p50", 500}, {"p90", 900}, {"p99", 990}, {"p99.9", 999}}

type benchJSON struct {
	Operation    string            `json:"operation"`
	Addresses    []string          `json:"addresses"`
	Clients      int               `json:"clients"`
	Connections  int               `json:"connections"`
	KeySize      int               `json:"key_size"`
	ValueSize    int               `json:"value_size"`
	Keys         int               `json:"keys"`
	Distribution string            `json:"distribution"`
	Serializable bool              `json:"serializable"`
	Seconds      float64           `json:"seconds"`
	Done         uint64            `json:"done"`
	Active       float64           `json:"active_seconds"` // to the last answer
	PerSecond    float64           `json:"per_second"`     // of these
	Undecided    uint64            `json:"undecided"`      // writes that may still commit
	LatencyNs    map[string]int64  `json:"latency_ns"`     // p50, p90, p99, p99.9, max
	Errors       map[string]uint64 `json:"errors"`
}

// Bench writes the results of a load.
func (p Printer) Bench(r *bench.Result) error {
	operation := "get"
	if r.Config.Write {
		operation = "put"
	}
	if p.Format == JSON {
		latency := map[string]int64{"max": int64(r.Latency.Max())}
		for _, q := range quantiles {
			latency[q.name] = int64(r.Latency.Quantile(q.per, 1000))
		}
		c := r.Config
		return p.JSON(benchJSON{
			Operation: operation, Addresses: c.Addresses, Clients: c.Clients, Connections: c.Connections,
			KeySize: c.KeySize, ValueSize: c.ValueSize, Keys: c.Keys, Distribution: string(c.Distribution),
			Serializable: c.Serializable, Seconds: r.Took.Seconds(), Done: r.Done, PerSecond: r.PerSecond(),
			Active: r.Active.Seconds(), Undecided: r.Undecided(),
			LatencyNs: latency, Errors: r.Errors,
		})
	}
	fmt.Fprintf(p.Out, "%s: %d in %s with %s on %s: %.0f per second\n",
		operation, r.Done, r.Active.Round(time.Millisecond), Count(r.Config.Clients, "client"), Count(r.Config.Connections, "connection"), r.PerSecond())
	if n := r.Undecided(); n > 0 {
		fmt.Fprintf(p.Out, "undecided: %d, after %s in all; they may still commit\n", n, r.Took.Round(time.Millisecond))
	}
	fmt.Fprint(p.Out, "latency:")
	for _, q := range quantiles {
		fmt.Fprintf(p.Out, "  %s %s", q.name, round(r.Latency.Quantile(q.per, 1000)))
	}
	fmt.Fprintf(p.Out, "  max %s\n", round(r.Latency.Max()))
	for _, kind := range slices.Sorted(maps.Keys(r.Errors)) {
		if kind == bench.Undecided { // a line of its own has them
			continue
		}
		fmt.Fprintf(p.Out, "errors:  %d %s\n", r.Errors[kind], Line(kind))
	}
	return nil
}

// round leaves three or four digits.
func round(d time.Duration) time.Duration {
	switch {
	case d > 10*time.Second:
		return d.Round(10 * time.Millisecond)
	case d > 10*time.Millisecond:
		return d.Round(10 * time.Microsecond)
	}
	return d.Round(time.Microsecond)
}
