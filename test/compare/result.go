package main

import (
	"cmp"
	"slices"
)

// Report is all that is written as JSON.
type Report struct {
	Machine     Machine  `json:"machine"`
	Command     string   `json:"command"` // that made it
	Seconds     float64  `json:"seconds_per_cell"`
	Repetitions int      `json:"repetitions"`
	Clients     []int    `json:"clients"`
	Tool        string   `json:"tool,omitempty"` // toolEtcd, or each system's own
	Connections int      `json:"connections"`    // that the clients share, at most
	Spread      bool     `json:"spread"`         // over all members, or all clients on one
	Systems     []System `json:"systems"`
	Skipped     []string `json:"skipped,omitempty"` // and why
	Samples     []Sample `json:"samples"`
}

// System is one of those compared.
type System struct {
	Name  string `json:"name"`
	Title string `json:"title"`
}

// Sample is one cell of one repetition. What is nil was not to be had.
type Sample struct {
	System     string   `json:"system"`
	Repetition int      `json:"repetition"` // from 1
	Operation  string   `json:"operation"`
	Clients    int      `json:"clients"`
	Done       uint64   `json:"done"`
	Errors     uint64   `json:"errors"`
	PerSecond  *float64 `json:"per_second"`
	P50        *float64 `json:"p50_ms"`
	P99        *float64 `json:"p99_ms"`
	CPU        *float64 `json:"cpu_us_per_op"` // of all members together
	Syncs      *float64 `json:"syncs_per_op"`  // of all members together
	Others     *float64 `json:"others"`        // part of the processors that other programs used meanwhile, 0 to 1
	Failure    string   `json:"failure,omitempty"`
}

// metric is a column.
type metric struct {
	name string
	of   func(Sample) *float64
}

var (
	rate  = metric{"per second", func(s Sample) *float64 { return s.PerSecond }}
	p50   = metric{"p50 ms", func(s Sample) *float64 { return s.P50 }}
	p99   = metric{"p99 ms", func(s Sample) *float64 { return s.P99 }}
	cpu   = metric{"CPU µs/op", func(s Sample) *float64 { return s.CPU }}
	syncs = metric{"syncs/op", func(s Sample) *float64 { return s.Syncs }}
)

// span is what repetitions said of one thing. The zero value is nothing.
type span struct {
	median, low, high float64
	n                 int
}

// spanOf sorts values. The median of an even number is the mean of the middle two.
func spanOf(values []float64) span {
	if len(values) == 0 {
		return span{}
	}
	slices.SortFunc(values, cmp.Compare)
	n := len(values)
	return span{median: (values[(n-1)/2] + values[n/2]) / 2, low: values[0], high: values[n-1], n: n}
}

// crowds is the numbers of clients that an operation is measured with.
func (r *Report) crowds(operation string) []int {
	if operation == watch { // its load generator has one, always
		return r.Clients[:1]
	}
	return r.Clients
}

// span is a metric of a system in one cell, over the repetitions.
func (r *Report) span(m metric, system, operation string, clients int) span {
	var values []float64
	for _, s := range r.Samples {
		if s.System == system && s.Operation == operation && s.Clients == clients {
			if v := m.of(s); v != nil {
				values = append(values, *v)
			}
		}
	}
	return spanOf(values)
}

// ratio is a metric of a system over that of the baseline in the same cell of
// the same repetition.
func (r *Report) ratio(m metric, system, operation string, clients int) span {
	var values []float64
	for _, s := range r.Samples {
		if s.System != system || s.Operation != operation || s.Clients != clients {
			continue
		}
		for _, b := range r.Samples {
			if b.System != baseline || b.Operation != operation || b.Clients != clients || b.Repetition != s.Repetition {
				continue
			}
			if v, base := m.of(s), m.of(b); v != nil && base != nil && *base > 0 {
				values = append(values, *v / *base)
			}
		}
	}
	return spanOf(values)
}

// has reports whether there is any sample of an operation by a system.
func (r *Report) has(system, operation string) bool {
	return slices.ContainsFunc(r.Samples, func(s Sample) bool { return s.System == system && s.Operation == operation })
}
