package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/aweigh/aweigh/node"
)

// source reads one part of a node and emits what it found.
type source func(emit)

// emit takes the samples of one scrape.
type emit func(prometheus.Metric)

// collector is a prometheus.Collector of sources. It describes nothing ahead, and
// so is not checked for consistency when registered, but with every scrape.
type collector []source

// Describe implements prometheus.Collector.
func (c collector) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (c collector) Collect(out chan<- prometheus.Metric) {
	for _, s := range c {
		s(func(m prometheus.Metric) { out <- m })
	}
}

// metric is a name, what it means, and its labels. There is one for each name, so
// that a scrape makes no new ones.
type metric struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
}

func counter(name, help string, labels ...string) metric {
	return foreignCounter("aweigh_"+name, help, labels...)
}

func gauge(name, help string, labels ...string) metric {
	return foreignGauge("aweigh_"+name, help, labels...)
}

// foreignCounter has a name that others gave.
func foreignCounter(name, help string, labels ...string) metric {
	return metric{prometheus.NewDesc(name, help, labels, nil), prometheus.CounterValue}
}

func foreignGauge(name, help string, labels ...string) metric {
	return metric{prometheus.NewDesc(name, help, labels, nil), prometheus.GaugeValue}
}

// number is what counts are made of.
type number interface {
	~int | ~int64 | ~uint64 | ~float64
}

// send emits a sample with the values of its labels.
func send[T number](to emit, m metric, v T, labels ...string) {
	to(prometheus.MustNewConstMetric(m.desc, m.kind, float64(v), labels...))
}

// sendBool emits 1 for true.
func sendBool(to emit, m metric, v bool, labels ...string) {
	n := 0
	if v {
		n = 1
	}
	send(to, m, n, labels...)
}

// sendLatencies emits a histogram, in seconds.
func sendLatencies(to emit, m metric, l node.Latencies) {
	buckets := make(map[float64]uint64, len(l.AtMost))
	for bound, n := range l.AtMost {
		buckets[bound.Seconds()] = n
	}
	to(prometheus.MustNewConstHistogram(m.desc, l.Count, l.Sum.Seconds(), buckets))
}
