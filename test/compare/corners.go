package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/aweigh/aweigh/etcd/etcdpb"
)

// What lies beside the beaten track, of every system through etcd's API at one member: long lists in pages, creates
// one after another, counts, the latency of a watch beside large reads, and the memory that all that takes.

const (
	creates     = 10_000
	listed      = 50_000 // keys that lists read
	listedSize  = 1 << 10
	listedPage  = 500
	changed     = 50 // of the listed keys, which a list by revision finds
	askedAgain  = 5  // lists by revision
	counts      = 100
	watchPause  = 10 * time.Millisecond // between the puts that are watched
	readMost    = 300e6                 // bytes that are read beside a watch, a second
	readKeys    = 1000                  // at a time
	readStreams = 4
	settled     = 2 * time.Second // after many writes
)

const (
	createdPrefix, listedPrefix, watchedPrefix = "/created/", "/listed/", "/watched/"
)

// corner is one figure of a system.
type corner int

const (
	createAll corner = iota
	createP50
	createP99
	listPages
	listChanged
	countP50
	aloneP50
	aloneP99
	besideP50
	besideP99
	besidePut50
	besidePut99
	besideRead
	memoryNow
	memoryMost
	cornersAll // how many there are
)

// cornerNames are the rows of the table.
var cornerNames = [cornersAll]string{
	createAll:   fmt.Sprintf("%d creates, one after another: s", creates),
	createP50:   "each: p50 ms",
	createP99:   "p99 ms",
	listPages:   fmt.Sprintf("list %d keys in pages of %d: s", listed, listedPage),
	listChanged: fmt.Sprintf("list %d of them, by revision: ms", changed),
	countP50:    fmt.Sprintf("count %d keys, after a write: p50 ms", creates),
	aloneP50:    "watch, from put to event: p50 ms",
	aloneP99:    "p99 ms",
	besideP50:   "beside reads: p50 ms",
	besideP99:   "p99 ms",
	besidePut50: "the put alone: p50 ms",
	besidePut99: "p99 ms",
	besideRead:  "these reads: MB/s",
	memoryNow:   "memory of the member: MiB",
	memoryMost:  "at most: MiB",
}

// cornered is what one repetition found.
type cornered [cornersAll]float64

// served is a system whose corners can be measured.
type served interface {
	// serving states which member clients use, by its place.
	serving(ctx context.Context, c *cluster) (int, error)
}

// serving implements served: the leader.
func (e *etcd) serving(ctx context.Context, c *cluster) (int, error) {
	for i, address := range c.etcd {
		if leads, err := leader(ctx, address); err != nil || leads {
			return i, err
		}
	}
	return 0, nil
}

// serving implements served: the first of a devnet is at an address that is known.
func (a *aweigh) serving(context.Context, *cluster) (int, error) { return 0, nil }

// corners measures all systems that can be, in turn.
func (r *runner) corners(ctx context.Context) ([][]cornered, error) {
	all := make([][]cornered, len(r.systems))
	return all, r.turns(func(repetition, at int) error {
		s, ok := r.systems[at].(served)
		if !ok {
			return nil
		}
		return r.with(ctx, repetition, at, func(c *cluster, err error) error {
			if err != nil {
				return err
			}
			place, err := s.serving(ctx, c)
			if err != nil {
				return err
			}
			x, err := measureCorners(ctx, c.etcd[place], c.pids[place], r.duration, r.screen)
			if err == nil {
				all[at] = append(all[at], x)
			}
			return err
		})
	})
}

// cornerClient is a client of one member.
type cornerClient struct {
	etcdpb.KVClient
	watch   etcdpb.WatchClient
	address string
	screen  io.Writer
}

func measureCorners(
	ctx context.Context, address string, pid int, d time.Duration, screen io.Writer,
) (x cornered, err error) {
	conn, err := dialEtcd(address)
	if err != nil {
		return x, err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	k := &cornerClient{etcdpb.NewKVClient(conn), etcdpb.NewWatchClient(conn), address, screen}
	steps := []func(context.Context, *cornered) error{
		k.create, k.list, k.count,
		func(ctx context.Context, x *cornered) error {
			event, _, err := k.watched(ctx, d)
			x[aloneP50], x[aloneP99] = event.p50, event.p99
			return err
		},
		func(ctx context.Context, x *cornered) error { return k.besideReads(ctx, x, d) },
	}
	for _, step := range steps {
		if err := step(ctx, &x); err != nil {
			return x, err
		}
	}
	x[memoryNow], x[memoryMost], err = memoryOf(pid)
	return x, err
}

// dialEtcd connects to a member that may answer with much.
func dialEtcd(address string) (*grpc.ClientConn, error) {
	return grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(64<<20)))
}

// create makes keys that are not there, as clients that coordinate do: compare, then put.
func (k *cornerClient) create(ctx context.Context, x *cornered) error {
	took, value, begin := make([]time.Duration, creates), make([]byte, valueSize), time.Now()
	for i := range took {
		start, key := time.Now(), createdKey(i)
		out, err := k.Txn(ctx, &etcdpb.TxnRequest{
			Compare: []*etcdpb.Compare{{Key: key, Target: etcdpb.Compare_MOD, TargetUnion: &etcdpb.Compare_ModRevision{}}},
			Success: []*etcdpb.RequestOp{putOp(key, value)},
		})
		if err == nil && !out.Succeeded {
			err = fmt.Errorf("%w: %s was there", errOutput, key)
		}
		if err != nil {
			return err
		}
		took[i] = time.Since(start)
	}
	all := time.Since(begin)
	l, err := summarize(took, all)
	x[createAll], x[createP50], x[createP99] = all.Seconds(), l.p50, l.p99
	fmt.Fprintf(k.screen, "  creates: %.2f s\n", x[createAll])
	return err
}

func createdKey(i int) []byte { return fmt.Appendf(nil, "%s%08d", createdPrefix, i) }
func listedKey(i int) []byte  { return fmt.Appendf(nil, "%s%08d", listedPrefix, i) }

// putOp is a put in a transaction.
func putOp(key, value []byte) *etcdpb.RequestOp {
	put := &etcdpb.PutRequest{Key: key, Value: value}
	return &etcdpb.RequestOp{Request: &etcdpb.RequestOp_RequestPut{RequestPut: put}}
}

// prefixEnd is the end of the range of all keys with a prefix that ends with a slash.
func prefixEnd(prefix string) []byte { return []byte(strings.TrimSuffix(prefix, "/") + "0") }

// fill writes the keys that are listed.
func (k *cornerClient) fill(ctx context.Context) error {
	const together, clients = 100, 4
	var wait sync.WaitGroup
	var failed [clients]error
	for c := range clients {
		wait.Go(func() {
			for from := c * together; from < listed && failed[c] == nil; from += clients * together {
				r := &etcdpb.TxnRequest{}
				for i := from; i < from+together; i++ {
					value := make([]byte, listedSize)
					copy(value, strconv.Itoa(i))
					r.Success = append(r.Success, putOp(listedKey(i), value))
				}
				_, failed[c] = k.Txn(ctx, r)
			}
		})
	}
	wait.Wait()
	select {
	case <-time.After(settled):
	case <-ctx.Done():
	}
	return errors.Join(failed[:]...)
}

// list reads all listed keys in pages as of one revision, as a client does that looks for few of them by what their
// values say; and then those that changed lately, by their revision.
func (k *cornerClient) list(ctx context.Context, x *cornered) error {
	if err := k.fill(ctx); err != nil {
		return err
	}
	begin, found := time.Now(), 0
	r := &etcdpb.RangeRequest{Key: []byte(listedPrefix), RangeEnd: prefixEnd(listedPrefix), Limit: listedPage}
	for more := true; more; {
		out, err := k.Range(ctx, r)
		if err != nil {
			return err
		}
		if left := int64(listed - found); out.Count != left {
			return fmt.Errorf("%w: a count of %d keys, of %d", errOutput, out.Count, left)
		}
		if found, more = found+len(out.Kvs), out.More; more {
			r.Revision, r.Key = out.Header.Revision, append(out.Kvs[len(out.Kvs)-1].Key, 0)
		}
	}
	if found != listed {
		return fmt.Errorf("%w: %d keys in pages, of %d", errOutput, found, listed)
	}
	x[listPages] = time.Since(begin).Seconds()

	var since int64
	for i := range changed {
		out, err := k.Put(ctx, &etcdpb.PutRequest{Key: listedKey(i * listed / changed), Value: make([]byte, listedSize)})
		if err != nil {
			return err
		}
		if i == 0 {
			since = out.Header.Revision
		}
	}
	var took []float64
	for range askedAgain {
		start := time.Now()
		out, err := k.Range(ctx, &etcdpb.RangeRequest{
			Key: []byte(listedPrefix), RangeEnd: prefixEnd(listedPrefix), Limit: listedPage, MinModRevision: since,
		})
		if err != nil {
			return err
		}
		if len(out.Kvs) != changed {
			return fmt.Errorf("%w: %d keys that changed, of %d", errOutput, len(out.Kvs), changed)
		}
		took = append(took, milliseconds(time.Since(start)))
	}
	x[listChanged] = spanOf(took).median
	fmt.Fprintf(k.screen, "  list in pages: %.2f s, by revision: %.1f ms\n", x[listPages], x[listChanged])
	return nil
}

// count counts the created keys, each time after one of them was written.
func (k *cornerClient) count(ctx context.Context, x *cornered) error {
	var took []time.Duration
	begin := time.Now()
	for i := range counts {
		if _, err := k.Put(ctx, &etcdpb.PutRequest{Key: createdKey(i), Value: make([]byte, valueSize)}); err != nil {
			return err
		}
		start := time.Now()
		out, err := k.Range(ctx, &etcdpb.RangeRequest{
			Key: []byte(createdPrefix), RangeEnd: prefixEnd(createdPrefix), CountOnly: true,
		})
		if err != nil {
			return err
		}
		took = append(took, time.Since(start))
		if out.Count != creates {
			return fmt.Errorf("%w: a count of %d keys, of %d", errOutput, out.Count, creates)
		}
	}
	l, err := summarize(took, time.Since(begin))
	x[countP50] = l.p50
	fmt.Fprintf(k.screen, "  count: %.2f ms\n", l.p50)
	return err
}

// memoryOf is what a process holds of memory, now and at most, in MiB.
func memoryOf(pid int) (now, most float64, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, 0, fmt.Errorf("compare: memory: %w", err)
	}
	for name, to := range map[string]*float64{"VmRSS": &now, "VmHWM": &most} {
		kib, _, _ := strings.Cut(field(string(text), name), " ")
		n, err := strconv.Atoi(kib)
		if err != nil {
			return 0, 0, fmt.Errorf("%w: /proc/PID/status says %q for %s", errOutput, kib, name)
		}
		*to = float64(n) / 1024
	}
	return now, most, nil
}
