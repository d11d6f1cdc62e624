// Package metrics shows a node's counts in Prometheus' text format. Nothing is
// measured here: a scrape reads counts that the parts keep anyway, in atomics. Each
// node has a registry of its own, so that several can run in one process.
//
// Labels have few values, none of them chosen by a client: names of anchors
// from the genesis, kinds, and classes. A metric
// without the label "scope" is about the whole node, or states that it is about the
// root scope.
package metrics

import (
	"net/http"
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/aweigh/aweigh/etcd"
	"github.com/aweigh/aweigh/internal/authn"
	"github.com/aweigh/aweigh/internal/requestlog"
	"github.com/aweigh/aweigh/node"
	"github.com/aweigh/aweigh/p2p"
	"github.com/aweigh/aweigh/store/diskstore"
)

// Node is the part of a node that metrics need; *node.Node is one.
type Node interface {
	Root() *node.Replica
	NetworkStats() p2p.Stats
	Scopes() []node.ScopeInfo
}

// Store is the part of a store that metrics need; *diskstore.Store is one.
type Store interface {
	Metrics() diskstore.Metrics
	Free() (bytes uint64, err error)
	Err() error
}

// Etcd is the part of the port of etcd's API that metrics need; *etcd.Server is one.
type Etcd interface {
	Counts() etcd.Counts
}

const (
	// scrapesAtOnce bounds the scrapes in progress; further ones are refused.
	scrapesAtOnce = 4
	// scrapeWithin bounds the time of one.
	scrapeWithin = 10 * time.Second
)

// Handler serves the metrics of a node, its store, and its port of etcd's API, which
// is nil if there is none. insecure reports whether a port takes clients without certificates, and callers are the
// counts of their credentials.
func Handler(version string, insecure bool, n Node, s Store, port Etcd, callers *authn.Counts,
	requests *requestlog.Log) http.Handler {
	r := prometheus.NewRegistry()
	r.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "aweigh_build_info", Help: "1, with the version of the program.",
			ConstLabels: prometheus.Labels{"version": version, "go": runtime.Version()},
		}, func() float64 { return 1 }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "aweigh_insecure", Help: "1 if a port for clients takes clients without certificates, by the setting insecure.",
		}, func() float64 {
			if insecure {
				return 1
			}
			return 0
		}),
		collector{ofNode(n, port), ofNetwork(n), ofStore(s), ofCallers(callers), ofRequests(requests)},
	)
	return promhttp.HandlerFor(r, promhttp.HandlerOpts{
		MaxRequestsInFlight: scrapesAtOnce, Timeout: scrapeWithin, DisableCompression: true,
	})
}
