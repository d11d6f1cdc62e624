package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// errOutput means that a program printed something else than expected.
var errOutput = errors.New("compare: output not understood")

// parseAweigh reads what "aweigh bench -o json" prints.
func parseAweigh(text []byte) (loaded, error) {
	var r struct {
		Done      uint64            `json:"done"`
		PerSecond float64           `json:"per_second"`
		LatencyNs map[string]int64  `json:"latency_ns"`
		Errors    map[string]uint64 `json:"errors"`
	}
	if err := json.Unmarshal(text, &r); err != nil {
		return loaded{}, fmt.Errorf("%w: aweigh bench: %w", errOutput, err)
	}
	p50, ok50 := r.LatencyNs["p50"]
	p99, ok99 := r.LatencyNs["p99"]
	if !ok50 || !ok99 || r.Done == 0 {
		return loaded{}, fmt.Errorf("%w: aweigh bench: nothing done, or no latencies", errOutput)
	}
	l := loaded{done: r.Done, perSecond: r.PerSecond, p50: milliseconds(time.Duration(p50)), p99: milliseconds(time.Duration(p99))}
	for _, n := range r.Errors {
		l.errors += n
	}
	return l, nil
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

var (
	etcdTotal   = regexp.MustCompile(`(?m)^\s*Total:\s+(\S+) secs`)
	etcdRate    = regexp.MustCompile(`(?m)^\s*Requests/sec:\s+(\S+)$`)
	etcdP50     = regexp.MustCompile(`(?m)^\s*50% in (\S+) secs`)
	etcdP99     = regexp.MustCompile(`(?m)^\s*99% in (\S+) secs`)
	etcdFailure = regexp.MustCompile(`(?m)^\s*\[(\d+)\]\t`)
)

// parseEtcd reads what etcd's "benchmark --precise put" and "range" print. It
// counts no requests, so that what was done follows from time and rate. Of "watch-latency",
// what it says of the events is read, which comes last.
func parseEtcd(text []byte) (loaded, error) {
	if _, events, ok := bytes.Cut(text, []byte("Watch events summary:")); ok {
		text = events
	}
	var numbers [4]float64
	for i, pattern := range []*regexp.Regexp{etcdTotal, etcdRate, etcdP50, etcdP99} {
		found := pattern.FindSubmatch(text)
		if found == nil {
			return loaded{}, fmt.Errorf("%w: etcd's benchmark: nothing like %s", errOutput, pattern)
		}
		var err error
		if numbers[i], err = strconv.ParseFloat(strings.TrimSuffix(string(found[1]), "."), 64); err != nil {
			return loaded{}, fmt.Errorf("%w: etcd's benchmark: %w", errOutput, err)
		}
	}
	l := loaded{
		done: uint64(numbers[0]*numbers[1] + .5), perSecond: numbers[1],
		p50: 1000 * numbers[2], p99: 1000 * numbers[3],
	}
	for _, found := range etcdFailure.FindAllSubmatch(text, -1) {
		n, err := strconv.ParseUint(string(found[1]), 10, 64)
		if err != nil {
			return loaded{}, fmt.Errorf("%w: etcd's benchmark: %w", errOutput, err)
		}
		l.errors += n
	}
	return l, nil
}

// counter adds up the values of a metric in Prometheus' text format over all
// its labels, and reports whether there is any.
func counter(text, name string) (sum float64, found bool) {
	for line := range strings.Lines(text) {
		rest, ok := strings.CutPrefix(line, name)
		if !ok || rest == "" || rest[0] != ' ' && rest[0] != '{' {
			continue
		}
		if labelsEnd := strings.LastIndexByte(rest, '}'); labelsEnd >= 0 {
			rest = rest[labelsEnd+1:]
		}
		fields := strings.Fields(rest)
		if len(fields) == 0 {
			continue
		}
		if v, err := strconv.ParseFloat(fields[0], 64); err == nil {
			sum, found = sum+v, true
		}
	}
	return sum, found
}
