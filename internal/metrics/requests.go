package metrics

import "github.com/aweigh/aweigh/internal/requestlog"

var recorded = counter("audit_lines_total",
	"Lines of the record of requests (audit-file), written or lost: no room in memory, or the file failed.", "result")

// ofRequests emits the counts of a record, which may be nil.
func ofRequests(l *requestlog.Log) source {
	return func(to emit) {
		c := l.Counts()
		send(to, recorded, c.Written, "written")
		send(to, recorded, c.Lost, "lost")
	}
}
