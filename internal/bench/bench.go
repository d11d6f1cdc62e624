// Package bench loads the API of nodes with reads or writes and measures how
// fast they are answered.
package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/client"
	"github.com/aweigh/aweigh/scope"
)

// Config states what to do. Zero values of numbers mean the default given.
type Config struct {
	Credentials  client.Credentials
	Addresses    []string
	Write        bool          // put; otherwise get
	Prefix       string        // of all keys; /bench/
	Clients      int           // requests in flight; 64
	Connections  int           // that the clients share, spread over the addresses; 8
	KeySize      int           // bytes, with room for the prefix and a number of 16 digits; 32, or more if the prefix is long
	ValueSize    int           // bytes; 256
	Keys         int           // how many different ones; 10,000
	Duration     time.Duration // 10 s, if there is no Total either
	Total        uint64        // requests; 0: as many as fit in Duration
	Distribution Distribution  // uniform
	Serializable bool          // gets
	Timeout      time.Duration // of one request; 10 s
	Seed         uint64        // of the choice of keys
}

// Distribution is how keys are chosen.
type Distribution string

// The distributions.
const (
	Uniform    Distribution = "uniform"
	Zipf       Distribution = "zipf" // exponent 1.1: a few keys get most of it
	Sequential Distribution = "sequential"
)

// ErrConfig is wrapped by errors about a Config that makes no sense.
var ErrConfig = errors.New("bench: invalid configuration")

// numberSize is the size of the number with which keys end.
const numberSize = 16

// By default no scope takes larger keys, and larger values are never taken.
var maxKey, maxValue = scope.DefaultLimits().KeyBytes, scope.MostLimits().ValueBytes

func (c *Config) check() error {
	if c.Prefix == "" {
		c.Prefix = "/bench/"
	}
	for _, d := range []struct {
		name  string
		v     *int
		value int
	}{
		{"clients", &c.Clients, 64}, {"connections", &c.Connections, 8}, {"key-size", &c.KeySize, max(32, len(c.Prefix)+numberSize)},
		{"value-size", &c.ValueSize, 256}, {"keys", &c.Keys, 10_000},
	} {
		if *d.v == 0 {
			*d.v = d.value
		}
		if *d.v < 0 {
			return fmt.Errorf("%w: %s is negative", ErrConfig, d.name)
		}
	}
	if c.Duration == 0 && c.Total == 0 {
		c.Duration = 10 * time.Second
	}
	if c.Timeout == 0 {
		c.Timeout = 10 * time.Second
	}
	if c.Distribution == "" {
		c.Distribution = Uniform
	}
	switch {
	case len(c.Prefix)+numberSize > maxKey:
		return fmt.Errorf("%w: the prefix has %d bytes; with the number behind it, %d is the most", ErrConfig, len(c.Prefix), maxKey-numberSize)
	case c.KeySize < len(c.Prefix)+numberSize || c.KeySize > maxKey:
		return fmt.Errorf("%w: key-size is %d, between %d and %d is taken with this prefix", ErrConfig, c.KeySize, len(c.Prefix)+numberSize, maxKey)
	case c.ValueSize > maxValue:
		return fmt.Errorf("%w: value-size is %d; scopes take %d by default, and %d with the widest policy", ErrConfig, c.ValueSize, scope.DefaultLimits().ValueBytes, maxValue)
	case c.Duration < 0 || c.Timeout < 0:
		return fmt.Errorf("%w: a negative time", ErrConfig)
	case !slices.Contains([]Distribution{Uniform, Zipf, Sequential}, c.Distribution):
		return fmt.Errorf("%w: distribution is uniform, zipf or sequential, not %q", ErrConfig, c.Distribution)
	}
	c.Connections = min(c.Connections, c.Clients)
	return nil
}

// Result is the measurement.
type Result struct {
	Config  Config
	Took    time.Duration
	Active  time.Duration // to the last answer without an error; what waits in vain comes after
	Done    uint64        // answered without an error
	Errors  map[string]uint64
	Sample  error     // one of those errors; nil if there was none
	Latency Histogram // of those answered
}

// Progress is called once per second, and at the end if there were errors since.
type Progress struct {
	At           time.Duration // since the start
	Done, Errors uint64        // in the last second
}

// Run loads the nodes until the work is done or ctx ends. For reads, the keys
// are written first.
func Run(ctx context.Context, c Config, progress func(Progress)) (*Result, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	connections := make([]*client.Client, c.Connections)
	for i := range connections {
		// Its own address comes first, and the others only if that one is away.
		at := i % max(1, len(c.Addresses))
		var err error
		if connections[i], err = client.DialAs(c.Credentials, slices.Concat(c.Addresses[at:], c.Addresses[:at])...); err != nil {
			return nil, err
		}
		defer connections[i].Close()
	}
	if !c.Write {
		if err := fill(ctx, connections[0], c); err != nil {
			return nil, fmt.Errorf("bench: writing the keys to read: %w", err)
		}
	}
	until, cancel := context.WithCancel(ctx) // requests in flight then may be answered
	defer cancel()
	if c.Duration > 0 {
		until, cancel = context.WithTimeout(ctx, c.Duration)
		defer cancel()
	}
	var tickets atomic.Uint64
	workers := make([]*worker, c.Clients)
	var running sync.WaitGroup
	start := time.Now()
	for i := range workers {
		workers[i] = newWorker(c, connections[i%len(connections)], uint64(i), &tickets)
		running.Go(func() { workers[i].run(ctx, until) })
	}
	finished := make(chan struct{})
	go func() {
		running.Wait()
		close(finished)
	}()
	report(start, workers, progress, finished)
	r := &Result{Config: c, Took: time.Since(start), Errors: make(map[string]uint64)}
	for _, w := range workers {
		r.Done += w.done.Load()
		if w.done.Load() > 0 {
			r.Active = max(r.Active, w.last.Sub(start))
		}
		r.Latency.merge(&w.latency)
		for kind, n := range w.errors {
			r.Errors[kind] += n
		}
		r.Sample = cmp.Or(r.Sample, w.sample)
	}
	return r, nil
}

// report reports progress until the work is finished.
func report(start time.Time, workers []*worker, progress func(Progress), finished chan struct{}) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	var last Progress
	for done := false; !done; {
		select {
		case <-finished:
			done = true
		case <-tick.C:
		}
		now := Progress{At: time.Since(start)}
		for _, w := range workers {
			now.Done += w.done.Load()
			now.Errors += w.failed.Load()
		}
		if !done || now.Errors > last.Errors { // at the end those alone that waited in vain
			progress(Progress{At: now.At, Done: now.Done - last.Done, Errors: now.Errors - last.Errors})
		}
		last = now
	}
}

// worker is one client: one request in flight.
type worker struct {
	Config
	client  *client.Client
	tickets *atomic.Uint64             // requests begun by all
	next    func(ticket uint64) uint64 // number of the key of a request
	key     []byte
	value   []byte

	done, failed atomic.Uint64
	_            [48]byte // keeps the counters of two workers in different cache lines
	latency      Histogram
	last         time.Time // of the answers without an error
	errors       map[string]uint64
	sample       error
}

func newWorker(c Config, on *client.Client, i uint64, tickets *atomic.Uint64) *worker {
	w := &worker{Config: c, client: on, tickets: tickets, errors: make(map[string]uint64)}
	random := rand.New(rand.NewPCG(c.Seed, i))
	keys := uint64(c.Keys)
	switch c.Distribution {
	case Zipf:
		zipf := rand.NewZipf(random, 1.1, 1, keys-1)
		w.next = func(uint64) uint64 { return zipf.Uint64() }
	case Sequential:
		w.next = func(ticket uint64) uint64 { return ticket % keys } // of all clients together: each key in its turn
	default:
		w.next = func(uint64) uint64 { return random.Uint64N(keys) }
	}
	w.key, w.value = c.key(), make([]byte, c.ValueSize)
	for i := range w.value {
		w.value[i] = byte('a' + random.UintN(26))
	}
	return w
}

// key is a key without its number.
func (c *Config) key() []byte {
	key := make([]byte, c.KeySize)
	copy(key, c.Prefix)
	return key
}

// number writes a number behind a key's prefix, to the key's end.
func (c *Config) number(key []byte, n uint64) {
	for i := len(key) - 1; i >= len(c.Prefix); i-- {
		key[i] = byte('0' + n%10)
		n /= 10
	}
}

// run makes requests until the time is up, or ctx ends.
func (w *worker) run(ctx, until context.Context) {
	for until.Err() == nil {
		ticket := w.tickets.Add(1)
		if w.Total > 0 && ticket > w.Total {
			return
		}
		w.number(w.key, w.next(ticket-1))
		start := time.Now()
		err := w.request(ctx)
		took := time.Since(start)
		switch {
		case err == nil:
			w.latency.add(took)
			w.last = start.Add(took)
			w.done.Add(1)
		case ctx.Err() != nil: // the end, no fault of the node
		default:
			w.failed.Add(1)
			w.errors[kindOf(err)]++
			w.sample = err
			if errors.Is(err, client.ErrPending) { // each opens a motion, and there are few to go round
				return
			}
		}
	}
}

func (w *worker) request(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, w.Timeout)
	defer cancel()
	if w.Write {
		_, err := w.client.Put(ctx, &aweighv1.PutRequest{Key: w.key, Value: w.value})
		return err
	}
	_, err := w.client.Range(ctx, &aweighv1.RangeRequest{Key: w.key, Serializable: w.Serializable})
	return err
}

// fillBatch is how many keys one transaction of fill sets.
const fillBatch = 100

// fill sets all keys.
func fill(ctx context.Context, on *client.Client, c Config) error {
	value := make([]byte, c.ValueSize)
	batch := max(1, min(fillBatch, scope.DefaultLimits().MutationBytes/2/(c.KeySize+c.ValueSize)))
	for from := 0; from < c.Keys; from += batch {
		req := new(aweighv1.TxnRequest)
		for i := from; i < min(from+batch, c.Keys); i++ {
			key := c.key()
			c.number(key, uint64(i))
			req.Success = append(req.Success, &aweighv1.Op{Op: &aweighv1.Op_Put{Put: &aweighv1.PutRequest{Key: key, Value: value}}})
		}
		if err := func() error {
			ctx, cancel := context.WithTimeout(ctx, c.Timeout)
			defer cancel()
			_, err := on.Txn(ctx, req)
			return err
		}(); err != nil {
			return err
		}
	}
	return nil
}

// Undecided is the kind of error of writes that may still commit.
const Undecided = "undecided"

// kinds are the kinds of errors, the most telling first.
var kinds = []struct {
	err  error
	name string
}{
	{client.ErrPending, "waits for approval, where nothing can be measured"}, {client.ErrUndecided, Undecided}, {client.ErrUnread, "no quorum to read"}, {client.ErrBusy, "busy"},
	{client.ErrUnreachable, "unreachable"}, {client.ErrInvalid, "invalid"}, {client.ErrFailed, "failed"},
	{context.DeadlineExceeded, "timeout"},
}

// Err is an error if nothing was done: of the most telling kind that there was.
func (r *Result) Err() error {
	if r.Done > 0 || len(r.Errors) == 0 {
		return nil
	}
	for _, k := range kinds {
		if r.Errors[k.name] > 0 {
			if k.err == client.ErrUndecided && errors.Is(r.Sample, k.err) { // of which none can be repeated
				return fmt.Errorf("bench: not one request was answered within %s: %w: %s", r.Took.Round(time.Millisecond), k.err, r.Sample)
			}
			if errors.Is(r.Sample, k.err) {
				return fmt.Errorf("bench: not one request was answered within %s: %w", r.Took.Round(time.Millisecond), r.Sample)
			}
			return fmt.Errorf("bench: not one request was answered within %s: %w", r.Took.Round(time.Millisecond), k.err)
		}
	}
	return fmt.Errorf("bench: not one request was answered within %s", r.Took.Round(time.Millisecond))
}

// PerSecond is how many requests were answered in a second, as long as any were.
func (r *Result) PerSecond() float64 {
	if r.Active <= 0 {
		return 0
	}
	return float64(r.Done) / r.Active.Seconds()
}

// Undecided is how many writes were not known to be ordered when their clients
// stopped waiting.
func (r *Result) Undecided() uint64 { return r.Errors[kindOf(client.ErrUndecided)] }

// kindOf sorts errors for people.
func kindOf(err error) string {
	for _, k := range kinds {
		if errors.Is(err, k.err) {
			return k.name
		}
	}
	return err.Error()
}
