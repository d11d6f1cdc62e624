package admission

import (
	"runtime"
	"runtime/metrics"
	"time"
)

// schedulerSamples: the runtime measures one in so many of the times that a goroutine becomes ready to run
// (runtime.gTrackingPeriod).
const schedulerSamples = 8

// RunQueue returns a function that returns how many goroutines have waited for each processor on average since its
// last call: the time that all of them waited together, divided by the time that passed (Little's law).
func RunQueue(now func() time.Time) func() float64 {
	sample := []metrics.Sample{{Name: "/sched/latencies:seconds"}}
	var at time.Time
	var before []uint64
	return func() float64 {
		metrics.Read(sample)
		h := sample[0].Value.Float64Histogram()
		if before == nil {
			before = make([]uint64, len(h.Counts))
		}
		var waited float64 // seconds
		for i, count := range h.Counts {
			if least := h.Buckets[i]; least > 0 { // the first bucket has no lower end
				waited += float64(count-before[i]) * least
			}
		}
		passed := now().Sub(at)
		at = now()
		copy(before, h.Counts)
		return schedulerSamples * waited / passed.Seconds() / float64(runtime.GOMAXPROCS(0))
	}
}
