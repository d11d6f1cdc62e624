package api

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aweigh/aweigh/api/aweigh/v1/aweighv1connect"
)

// Limits of one server. They keep broken or hostile clients from taking what
// others need; access to the port is not decided here.
const (
	maxWatches = 1024      // watches at once: each final block wakes all of them
	maxCalls   = 4096      // other requests at once
	maxBodies  = 256 << 20 // bytes of all requests in progress

	bodyTime  = 30 * time.Second // in which a request must have arrived
	writeTime = 30 * time.Second // in which a client must have taken writeUnit bytes
	writeUnit = 256 << 10
)

var (
	errCrowded = errors.New("api: too many requests at once; try again later")
	errBodies  = errors.New("api: the requests in progress are too large together; try again later")
)

// limits count the work in progress on a server.
type limits struct{ watches, calls, bodies atomic.Int64 }

// enter takes the place of a call on an upgraded connection, and of the largest
// body that it may have. leave follows it, also after an error.
func (l *limits) enter() error {
	switch calls, bodies := l.calls.Add(1), l.bodies.Add(maxUpgraded); {
	case calls > maxCalls:
		return errCrowded
	case bodies > maxBodies:
		return errBodies
	}
	return nil
}

func (l *limits) leave() {
	l.calls.Add(-1)
	l.bodies.Add(-maxUpgraded)
}

// limited bounds what requests may take, in number, bytes and time.
func (l *limits) limited(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		count, most := &l.calls, int64(maxCalls)
		switch r.URL.Path {
		case aweighv1connect.NodeWatchProcedure, aweighv1connect.NodeWatchMotionProcedure,
			aweighv1connect.NodeTailProcedure:
			count, most = &l.watches, maxWatches
		}
		defer count.Add(-1)
		control := http.NewResponseController(w)
		body := &boundedBody{ReadCloser: r.Body, control: control, all: &l.bodies, arrived: func() { busy(r) }}
		defer func() { l.bodies.Add(-body.taken) }()
		if r.Body == http.NoBody {
			busy(r)
		} else { // also if no handler reads it
			_ = control.SetReadDeadline(time.Now().Add(bodyTime))
			r.Body = body
		}
		if r.ProtoMajor == 1 { // deadlines are the connection's there, and outlast a request
			_ = control.SetWriteDeadline(time.Time{})
			defer func() { _ = control.SetWriteDeadline(time.Now().Add(writeTime)) }()
		}
		if count.Add(1) > most {
			w.Header().Set("Retry-After", "1")
			http.Error(w, errCrowded.Error(), http.StatusTooManyRequests)
			return
		}
		timed := &timedWriter{ResponseWriter: w, control: control}
		h.ServeHTTP(timed, r.WithContext(context.WithValue(r.Context(), writerKey{}, timed)))
	})
}

// boundedBody is a request's body that must arrive in time, and whose bytes
// count while the request is in progress.
type boundedBody struct {
	io.ReadCloser
	control *http.ResponseController
	all     *atomic.Int64
	taken   int64
	arrived func()
}

// Read implements io.Reader.
func (b *boundedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.taken += int64(n)
	if b.all.Add(int64(n)) > maxBodies && err == nil {
		err = errBodies
	}
	if err == io.EOF { // a watch may last for days
		_ = b.control.SetReadDeadline(time.Time{})
		b.arrived()
	}
	return n, err
}

// timedWriter gives up on a client that does not read. The deadline holds
// during a write only: between two, a watch may wait for days.
type timedWriter struct {
	http.ResponseWriter
	control *http.ResponseController

	mu  sync.Mutex
	cut bool
}

// writerKey finds the timedWriter of a request in its context.
type writerKey struct{}

// cutOff ends the writes of a request, the one in progress as well.
func cutOff(ctx context.Context) {
	if w, ok := ctx.Value(writerKey{}).(*timedWriter); ok {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.cut = true
		_ = w.control.SetWriteDeadline(time.Unix(1, 0))
	}
}

// Write implements io.Writer.
func (w *timedWriter) Write(p []byte) (written int, err error) {
	defer w.untimed()
	for first := true; err == nil && (first || written < len(p)); first = false {
		w.timed()
		var n int
		n, err = w.ResponseWriter.Write(p[written:min(written+writeUnit, len(p))])
		written += n
	}
	return written, err
}

// Flush implements http.Flusher. That the client did not take it shows at the
// next write.
func (w *timedWriter) Flush() {
	w.timed()
	defer w.untimed()
	_ = w.control.Flush()
}

func (w *timedWriter) timed()   { w.until(time.Now().Add(writeTime)) }
func (w *timedWriter) untimed() { w.until(time.Time{}) }

func (w *timedWriter) until(t time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.cut {
		_ = w.control.SetWriteDeadline(t)
	}
}

// Unwrap is for http.ResponseController.
func (w *timedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
