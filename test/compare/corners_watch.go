package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	pacing "golang.org/x/time/rate"

	"github.com/aweigh/aweigh/etcd/etcdpb"
)

// watched is how long it takes from the moment that a client sends a put to that at which another hears of it, and to
// that at which the put is answered.
func (k *cornerClient) watched(ctx context.Context, d time.Duration) (event, put loaded, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	conn, err := dialEtcd(k.address) // of its own, as another client's
	if err != nil {
		return event, put, err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	stream, err := etcdpb.NewWatchClient(conn).Watch(ctx)
	if err != nil {
		return event, put, err
	}
	err = stream.Send(&etcdpb.WatchRequest{RequestUnion: &etcdpb.WatchRequest_CreateRequest{
		CreateRequest: &etcdpb.WatchCreateRequest{Key: []byte(watchedPrefix), RangeEnd: prefixEnd(watchedPrefix)},
	}})
	if err == nil {
		_, err = stream.Recv() // that it is made
	}
	if err != nil {
		return event, put, err
	}
	var took, answered []time.Duration
	begin, value := time.Now(), make([]byte, valueSize)
	for i := 0; time.Since(begin) < d; i++ {
		start := time.Now()
		heard := make(chan error, 1)
		go func() {
			out, err := stream.Recv()
			for err == nil && len(out.Events) == 0 {
				out, err = stream.Recv()
			}
			if took = append(took, time.Since(start)); err == nil && len(out.Events) != 1 {
				err = fmt.Errorf("%w: %d events of one put", errOutput, len(out.Events))
			}
			heard <- err
		}()
		_, err := k.Put(ctx, &etcdpb.PutRequest{Key: fmt.Appendf(nil, "%s%d", watchedPrefix, i%100), Value: value})
		if err != nil {
			return event, put, err
		}
		answered = append(answered, time.Since(start))
		if err := <-heard; err != nil {
			return event, put, err
		}
		time.Sleep(watchPause)
	}
	if event, err = summarize(took, time.Since(begin)); err == nil {
		put, err = summarize(answered, time.Since(begin))
	}
	return event, put, err
}

// readCommand is how this program is called to read, in a process of its own: what it takes to read much must not keep
// the one waiting who watches.
const readCommand = "read"

// besideReads is watched while another client reads as much as it can, up to readMost.
func (k *cornerClient) besideReads(ctx context.Context, x *cornered, d time.Duration) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	warmUp := work{duration: d}.warmUp()
	var reading errgroup.Group
	reading.Go(func() error {
		text, err := output(ctx, nil, self, readCommand, k.address, (warmUp + d).String())
		if err == nil {
			x[besideRead], err = strconv.ParseFloat(strings.TrimSpace(string(text)), 64)
		}
		return err
	})
	select {
	case <-time.After(warmUp):
	case <-ctx.Done():
	}
	event, put, err := k.watched(ctx, d)
	x[besideP50], x[besideP99], x[besidePut50], x[besidePut99] = event.p50, event.p99, put.p50, put.p99
	err = errors.Join(err, reading.Wait())
	fmt.Fprintf(k.screen, "  watch alone: %.2f, %.2f ms, beside %.0f MB/s: %.2f, %.2f ms, of which the put %.2f, %.2f\n",
		x[aloneP50], x[aloneP99], x[besideRead], x[besideP50], x[besideP99], x[besidePut50], x[besidePut99])
	return err
}

// readFor carries out readCommand with its arguments: it prints how many MB were read a second.
func readFor(ctx context.Context, w io.Writer, args []string) error {
	if len(args) != 2 {
		return fmt.Errorf("%w: %s ADDRESS DURATION", errUsage, readCommand)
	}
	d, err := time.ParseDuration(args[1])
	if err != nil {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	const bytes = readKeys * listedSize // of values in one answer
	pace := pacing.NewLimiter(readMost/bytes, readStreams)
	var reading errgroup.Group
	var read atomic.Int64
	begin := time.Now()
	for s := range readStreams {
		conn, err := dialEtcd(args[0])
		if err != nil {
			return err
		}
		defer conn.Close()
		kv := etcdpb.NewKVClient(conn)
		reading.Go(func() error {
			for i := s; time.Since(begin) < d; i += readStreams {
				from := i * readKeys % listed
				if err := pace.Wait(ctx); err != nil {
					return err
				}
				out, err := kv.Range(ctx, &etcdpb.RangeRequest{Key: listedKey(from), RangeEnd: listedKey(from + readKeys)})
				if err != nil {
					return err
				}
				if len(out.Kvs) != readKeys {
					return fmt.Errorf("%w: %d keys of %d", errOutput, len(out.Kvs), readKeys)
				}
				read.Add(bytes)
			}
			return nil
		})
	}
	err = reading.Wait()
	_, told := fmt.Fprintln(w, float64(read.Load())/1e6/time.Since(begin).Seconds())
	return errors.Join(err, told)
}

// cornersTable has a row for each figure and, besides what each system has, its multiple of etcd's.
func cornersTable(w io.Writer, systems []System, all [][]cornered) {
	base := -1
	head, line := "| |", "|---|"
	for i, s := range systems {
		if s.Name == baseline && len(all[i]) > 0 {
			base = i
		}
	}
	for i, s := range systems {
		if len(all[i]) == 0 {
			continue
		}
		head, line = head+" "+s.Title+" |", line+"---|"
		if base >= 0 && i != base {
			head, line = head+" times etcd |", line+"---|"
		}
	}
	fmt.Fprintln(w, head+"\n"+line)
	for c := range cornersAll {
		row := "| " + cornerNames[c] + " |"
		for i := range systems {
			if len(all[i]) == 0 {
				continue
			}
			row += " " + cornerSpan(all[i], nil, c).text(number) + " |"
			if base >= 0 && i != base {
				row += " " + cornerSpan(all[i], all[base], c).text(number) + " |"
			}
		}
		fmt.Fprintln(w, row)
	}
}

// cornerSpan is what repetitions say of a figure, or of its multiple of another system's in the same repetition.
func cornerSpan(of, over []cornered, c corner) span {
	var values []float64
	for i := range of {
		switch {
		case over == nil:
			values = append(values, of[i][c])
		case i < len(over) && over[i][c] > 0:
			values = append(values, of[i][c]/over[i][c])
		}
	}
	return spanOf(values)
}
