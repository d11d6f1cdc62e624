package audit_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/client"
	"github.com/aweigh/aweigh/internal/audit"
	"github.com/aweigh/aweigh/internal/devnet"
	"github.com/aweigh/aweigh/internal/testwait"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
)

// network is a real one of one anchor, with a history.
type network struct {
	*client.Client
	genesis scope.Genesis
}

// secret is the value of every key.
const secret = "the-value-of-every-key"

func newNetwork(t *testing.T) *network {
	t.Helper()
	n, err := devnet.Make(t.TempDir(), 1, quorum.BFT)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- n.Run(ctx, "test", slog.New(slog.DiscardHandler)) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	socket, err := n.Nodes[0].Home.Socket()
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.Dial("unix://" + socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	for end := time.Now().Add(testwait.Patience); ; time.Sleep(10 * time.Millisecond) { // until it answers
		if _, err = c.Status(t.Context()); err == nil {
			return &network{c, n.Genesis}
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
}

// write makes a history: changes of one key in a block, and of two.
func (n *network) write(t *testing.T, from, to int) {
	t.Helper()
	for i := from; i < to; i++ {
		put := func(key string) *aweighv1.Op {
			return &aweighv1.Op{Op: &aweighv1.Op_Put{Put: &aweighv1.PutRequest{Key: []byte(key),
				Value: []byte(secret)}}}
		}
		ops := []*aweighv1.Op{put(fmt.Sprintf("/a/%d", i%3)), put(fmt.Sprintf("/b/\xff%d", i))}
		if _, err := n.Txn(t.Context(), &aweighv1.TxnRequest{
			Success: ops[:1+i%2], Once: &aweighv1.Once{Justification: "for <b> & \"tests\" ] \n"},
		}); err != nil {
			t.Fatal(err)
		}
	}
}

// trail writes what "aweigh audit tail" writes.
func (n *network) trail(t *testing.T, req *aweighv1.TailRequest) (lines []string) {
	t.Helper()
	next := int64(0)
	add := func(line any) {
		text, err := audit.Encode(line)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, string(text))
	}
	if err := n.Tail(t.Context(), req, func(r *aweighv1.TailResponse) error {
		page, err := audit.Lines(r.Items, req.Prefix)
		for _, line := range page {
			add(line)
		}
		next = r.Next
		return err
	}); err != nil {
		t.Fatal(err)
	}
	c, err := n.Checkpoint(t.Context(), n.genesis.Network(), next, false)
	if err != nil {
		t.Fatal(err)
	}
	add(audit.HeadOf(next, n.genesis.Network(), &c.Ancestry, c.Consistency))
	return lines
}

// verify verifies lines for the network.
func (n *network) verify(lines []string, change func(*audit.Options)) (*audit.Report, error) {
	id := n.genesis.Network()
	o := audit.Options{Network: &id}
	if change != nil {
		change(&o)
	}
	return audit.Verify(bytes.NewReader([]byte(strings.Join(lines, ""))), o)
}
