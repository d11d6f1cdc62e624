package big

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/node"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/store/diskstore"
	"github.com/aweigh/aweigh/votes"
)

// observerEnv makes this test program an observer.
const observerEnv = "AWEIGH_BIG_OBSERVER"

func TestMain(m *testing.M) {
	if text := os.Getenv(observerEnv); text != "" {
		if err := observe(text); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

// errand is what an observer is told.
type errand struct {
	Dir       string
	Genesis   []byte
	Identity  string
	Bootstrap []string
	Behind    aweigh.Height
}

// line is what it says of itself, some times a second.
type line struct {
	Height     aweigh.Height
	Digest     aweigh.Hash
	CatchingUp bool
	Snapshot   *node.SnapshotProgress
	Peak       uint64 // KiB of memory at most so far, where the system says
}

func observe(text string) error {
	var e errand
	if err := json.Unmarshal([]byte(text), &e); err != nil {
		return err
	}
	identity, err := votes.ParsePrivateKey(e.Identity)
	if err != nil {
		return err
	}
	g, err := scope.DecodeGenesis(e.Genesis)
	if err != nil {
		return err
	}
	s, err := diskstore.Open(e.Dir, diskstore.Options{})
	if err != nil {
		return err
	}
	n, err := node.New(node.Config{
		Genesis: g, Identity: identity, Store: s, Listen: []string{"/ip4/127.0.0.1/tcp/0"}, Bootstrap: e.Bootstrap, SnapshotBehind: e.Behind,
		Log: slog.New(slog.NewTextHandler(os.Stderr, nil)),
	})
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- n.Run(ctx) }()
	say, tick := json.NewEncoder(os.Stdout), time.NewTicker(20*time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case err := <-ended:
			return err
		case <-tick.C:
			o := n.Root().Overview()
			if err := say.Encode(line{o.Head.Height, o.Head.Digest, n.Root().CatchingUp(), o.Snapshot, peak()}); err != nil {
				return err // whoever listened is gone
			}
		}
	}
}

// peak is the most memory that this process held, in KiB.
func peak() (kib uint64) {
	raw, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(raw), "VmHWM:")
	_, _ = fmt.Sscan(rest, &kib) // 0 if it does not say
	return kib
}
