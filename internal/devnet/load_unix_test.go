//go:build unix

package devnet

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/client"
	"github.com/aweigh/aweigh/etcd/etcdpb"
	"github.com/aweigh/aweigh/quorum"
)

// loadEnv makes the program of the tests a load generator: the surface, get or
// put, the address, and how many clients, separated by spaces.
const loadEnv = "AWEIGH_DEVNET_LOAD"

func TestMain(m *testing.M) {
	if how := os.Getenv(loadEnv); how != "" {
		if err := load(how); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// BenchmarkSurfaces is the cost of an operation for four anchors in this
// process by its surface, with 100 clients in another process on 8 connections:
// server-µs/op is user and system time of this one.
func BenchmarkSurfaces(b *testing.B) {
	n, err := Make(b.TempDir(), 4, quorum.BFT)
	if err != nil {
		b.Fatal(err)
	}
	if err := n.ServeEtcd("127.0.0.1:0", false); err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- n.Run(ctx, "", slog.New(slog.DiscardHandler)) }()
	defer func() {
		cancel()
		if err := <-ran; err != nil {
			b.Error(err)
		}
	}()
	if _, err := n.Greet(ctx); err != nil {
		b.Fatal(err)
	}
	for _, what := range []string{"api get", "etcd get", "api put", "etcd put"} {
		surface, operation, _ := strings.Cut(what, " ")
		address := n.Nodes[0].API
		if surface == "etcd" {
			address = n.Nodes[0].Etcd
		}
		b.Run(strings.ReplaceAll(what, " ", "/"), func(b *testing.B) {
			l := startLoad(b, surface, operation, address)
			l.run(b, 20*loadClients) // connections, goroutines, caches
			b.ResetTimer()
			before := used()
			l.run(b, b.N)
			b.StopTimer()
			b.ReportMetric(float64((used()-before).Nanoseconds())/1e3/float64(b.N), "server-µs/op")
		})
	}
}

// used is the processor time of this process.
func used() time.Duration {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		panic(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

const (
	loadClients     = 100
	loadConnections = 8
)

// generator is a process that loads a node. It reads how many operations to do
// and answers when they are done, line by line.
type generator struct {
	ask     *bufio.Writer
	answers *bufio.Reader
}

func startLoad(b *testing.B, surface, operation, address string) *generator {
	b.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), loadEnv+"="+strings.Join([]string{surface, operation, address}, " "))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := errors.Join(in.Close(), cmd.Wait()); err != nil {
			b.Error(err)
		}
	})
	return &generator{bufio.NewWriter(in), bufio.NewReader(out)}
}

func (g *generator) run(b *testing.B, n int) {
	b.Helper()
	fmt.Fprintln(g.ask, n)
	if err := g.ask.Flush(); err != nil {
		b.Fatal(err)
	}
	if line, err := g.answers.ReadString('\n'); err != nil || line != "done\n" {
		b.Fatalf("the load says %q, %v", line, err)
	}
}

// load does the operations that standard input requests, until that ends.
func load(how string) error {
	f := strings.Fields(how)
	one, err := operation(f[0], f[1], f[2])
	if err != nil {
		return err
	}
	told := bufio.NewScanner(os.Stdin)
	for told.Scan() {
		n, err := strconv.ParseInt(told.Text(), 10, 64)
		if err != nil {
			return err
		}
		if err := all(n, one); err != nil {
			return err
		}
		fmt.Println("done")
	}
	return told.Err()
}

// all does n operations, so many at once.
func all(n int64, one func(context.Context, int64) error) error {
	var begun atomic.Int64
	failed := make([]error, loadClients)
	var running sync.WaitGroup
	for i := range failed {
		running.Go(func() {
			for failed[i] == nil {
				at := begun.Add(1)
				if at > n {
					return
				}
				ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
				failed[i] = one(ctx, at)
				cancel()
			}
		})
	}
	running.Wait()
	return errors.Join(failed...)
}

// operation is one operation through a surface: a linearizable get of one key, or
// a put of 256 bytes under one of 10,000.
func operation(surface, which, address string) (func(context.Context, int64) error, error) {
	key := func(i int64) []byte { return fmt.Appendf(nil, "/load/%026d", i%10_000) }
	value, read := make([]byte, 256), []byte(GreetingKey)
	if surface == "api" {
		conns := make([]*client.Client, loadConnections)
		for i := range conns {
			var err error
			if conns[i], err = client.Dial(address); err != nil {
				return nil, err
			}
		}
		return func(ctx context.Context, i int64) (err error) {
			c := conns[i%loadConnections]
			if which == "get" {
				_, err = c.Range(ctx, &aweighv1.RangeRequest{Key: read})
			} else {
				_, err = c.Put(ctx, &aweighv1.PutRequest{Key: key(i), Value: value})
			}
			return err
		}, nil
	}
	conns := make([]etcdpb.KVClient, loadConnections)
	for i := range conns {
		conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			return nil, err
		}
		conns[i] = etcdpb.NewKVClient(conn)
	}
	return func(ctx context.Context, i int64) (err error) {
		c := conns[i%loadConnections]
		if which == "get" {
			_, err = c.Range(ctx, &etcdpb.RangeRequest{Key: read})
		} else {
			_, err = c.Put(ctx, &etcdpb.PutRequest{Key: key(i), Value: value})
		}
		return err
	}, nil
}
