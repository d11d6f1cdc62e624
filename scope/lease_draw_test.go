package scope

import (
	"time"

	"pgregory.net/rapid"
)

var someLeases = []int64{-7, 1, 2}

func drawLease(t *rapid.T) int64 { return rapid.SampledFrom(someLeases).Draw(t, "lease") }

func drawLeaseRequest(t *rapid.T, w *world) LeaseRequest {
	r := LeaseRequest{Kind: LeaseKind(rapid.SampledFrom([]int{1, 1, 2, 3}).Draw(t, "request")), IDs: []int64{drawLease(t)}}
	switch r.Kind {
	case LeaseGrant:
		r.TTL = rapid.SampledFrom(append([]int64{1000}, w.ttls...)).Draw(t, "ttl")
		r.Asked = w.now.Add(time.Duration(rapid.Int64Range(-9, 9).Draw(t, "asked")) * time.Second)
	case LeaseKeepAlive:
		if rapid.Bool().Draw(t, "all") {
			r.IDs = someLeases
		}
		r.Asked = w.now.Add(time.Duration(rapid.Int64Range(-9, 9).Draw(t, "asked")) * time.Second)
	}
	return r
}
