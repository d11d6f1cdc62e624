package api

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/api/aweigh/v1/aweighv1connect"
	"github.com/aweigh/aweigh/lineage"
	"github.com/aweigh/aweigh/node"
	"github.com/aweigh/aweigh/scope"
)

// impatient is a node whose one watch delivers until its client takes no more, and is late then.
type impatient struct {
	told
	ended chan time.Duration // how long deliver went on
}

func (impatient) CatchingUp() bool { return false }

func (n impatient) Watch(_ context.Context, _, _ []byte, _ int64, deliver func(node.Changes) error) error {
	large := &scope.Event{Class: lineage.Insert, Kv: scope.KeyValue{Key: []byte("/k"), Value: bytes.Repeat([]byte{1}, 1<<20)}}
	late, began := make(chan struct{}), time.Now()
	timer := time.AfterFunc(300*time.Millisecond, func() { close(late) })
	defer timer.Stop()
	for {
		if err := deliver(node.Changes{Events: []*scope.Event{large}, Late: late}); err != nil {
			n.ended <- time.Since(began)
			return err
		}
	}
}

// TestLateWatchesEnd: a watch's hanging write to its client ends when others wait for the resources that
// the watch holds.
func TestLateWatchesEnd(t *testing.T) {
	n := impatient{ended: make(chan time.Duration, 1)}
	s, _ := serve(t, n)
	body, err := proto.Marshal(&aweighv1.WatchRequest{Key: []byte("/k")})
	if err != nil {
		t.Fatal(err)
	}
	c, err := net.Dial("tcp", s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/connect+proto\r\n"+
		"Content-Length: %d\r\n\r\n\x00\x00\x00\x00%c%s", aweighv1connect.NodeWatchProcedure, len(body)+5, len(body), body); err != nil {
		t.Fatal(err)
	}
	select {
	case took := <-n.ended:
		if took < 300*time.Millisecond {
			t.Errorf("it ended after %v, before it was late", took)
		}
	case <-time.After(writeTime / 2):
		t.Error("a watch whose client takes nothing goes on while others wait")
	}
}
