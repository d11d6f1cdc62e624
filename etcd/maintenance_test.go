package etcd

import (
	"bytes"
	"context"
	"fmt"
	"hash/crc32"
	"net"
	"os"
	"testing"

	"github.com/aweigh/aweigh/etcd/etcdpb"
	"github.com/aweigh/aweigh/internal/testwait"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/scope"
)

func TestStatusAndMembersDescribeTheNode(t *testing.T) {
	w := newWorld(t, 1, Config{Size: func() (int64, int64) { return 4711, 4242 }})
	rev := w.put(t, "a", nil)
	s, err := w.Status(w.ctx, &etcdpb.StatusRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if s.Header.Revision != rev || s.DbSize != 4711 || s.DbSizeInUse != 4242 || s.Leader != s.Header.MemberId || s.RaftAppliedIndex != s.RaftIndex ||
		s.RaftIndex == 0 || s.IsLearner || len(s.Errors) > 0 || s.Version != apiVersion {
		t.Errorf("status %v", s)
	}
	m, err := w.MemberList(w.ctx, &etcdpb.MemberListRequest{Linearizable: true})
	if err != nil || len(m.Members) != 1 {
		t.Fatalf("members %v, %v", m, err)
	}
	if x := m.Members[0]; x.ID != s.Header.MemberId || x.Name != "a" || x.IsLearner || len(x.PeerURLs) == 0 ||
		len(x.ClientURLs) != 1 || x.ClientURLs[0] != "http://"+w.server.Addr() {
		t.Errorf("member %v", x)
	}
	alarms, err := w.Alarm(w.ctx, &etcdpb.AlarmRequest{})
	if err != nil || len(alarms.Alarms) > 0 {
		t.Errorf("alarms %v, %v", alarms, err)
	}
	if _, err := w.Alarm(w.ctx, &etcdpb.AlarmRequest{Action: etcdpb.AlarmRequest_ACTIVATE}); err == nil {
		t.Error("an alarm was raised by hand")
	}
	if _, err := w.Defragment(w.ctx, &etcdpb.DefragmentRequest{}); err != nil {
		t.Error(err)
	}
}

// TestDigestsCoverEveryKey compares what is computed page by page with what one
// read of everything gives, and changes one key at a time.
func TestDigestsCoverEveryKey(t *testing.T) {
	w := newWorld(t, 1, Config{})
	const keys = 3*firstPage + 5
	for i := range keys {
		w.put(t, fmt.Sprintf("k%03d", i), make([]byte, i*1000))
	}
	digest := func(rev int64) uint32 {
		t.Helper()
		h, err := w.HashKV(w.ctx, &etcdpb.HashKVRequest{Revision: rev})
		if err != nil {
			t.Fatal(err)
		}
		if rev != 0 && h.HashRevision != rev || h.CompactRevision != -1 {
			t.Errorf("digest %v", h)
		}
		return h.Hash
	}
	plain := func() uint32 {
		sum := crc32.New(crc32.MakeTable(crc32.Castagnoli))
		v, err := w.node.Root().Read(w.ctx, true)
		if err != nil {
			t.Fatal(err)
		}
		defer v.Close()
		res, err := v.Range(everything, everything, scope.Range{})
		if err != nil {
			t.Fatal(err)
		}
		for i := range res.Kvs {
			hashOne(sum, &res.Kvs[i])
		}
		return sum.Sum32()
	}
	before := w.put(t, "k", nil)
	first := digest(before)
	if first != plain() {
		t.Error("page by page, it is another digest")
	}
	seen := map[uint32]bool{first: true}
	for _, key := range []string{"k", "k000", fmt.Sprintf("k%03d", firstPage), fmt.Sprintf("k%03d", keys-1)} {
		w.put(t, key, []byte("changed"))
		now := digest(0)
		if seen[now] || now != plain() {
			t.Errorf("%s was changed, and the digest is %d", key, now)
		}
		seen[now] = true
	}
	if digest(before) != first {
		t.Error("a revision's digest changed afterwards")
	}
	if _, err := w.HashKV(w.ctx, &etcdpb.HashKVRequest{Revision: 9999}); err == nil {
		t.Error("the future has a digest")
	}
	h, err := w.Hash(w.ctx, &etcdpb.HashRequest{})
	if err != nil || h.Hash == 0 {
		t.Errorf("hash %v, %v", h, err)
	}
}

func TestTermsRise(t *testing.T) {
	last := uint64(0)
	for _, h := range []scope.Head{{View: 1}, {View: 2}, {View: 1 << 30}, {Epoch: 1, View: 1}, {Epoch: 1, View: 5}, {Epoch: 2}} {
		if now := term(&h); now <= last {
			t.Errorf("epoch %d view %d has term %d after %d", h.Epoch, h.View, now, last)
		} else {
			last = now
		}
	}
}

func TestNoMemberHasTheNumberOfNone(t *testing.T) {
	s := &machine.Status{}
	if memberID(s, "") == 0 {
		t.Error("an observer has the number that means none")
	}
}

func TestConnectionsAreBounded(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := bounded(inner, 2)
	defer l.Close()
	dial := func() net.Conn {
		t.Helper()
		c, err := net.Dial("tcp", inner.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	accepted := make(chan net.Conn)
	go func() {
		defer close(accepted)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			accepted <- c
		}
	}()
	dial()
	dial()
	first, second := <-accepted, <-accepted
	if n, err := dial().Read(make([]byte, 1)); err == nil {
		t.Errorf("a third connection is not closed: %d bytes came", n)
	}
	for range 2 {
		if err := first.Close(); err != nil && first == nil {
			t.Error(err)
		}
	}
	dial()
	if c := <-accepted; c == nil {
		t.Error("nobody is let in after one left")
	} else {
		defer c.Close()
	}
	defer second.Close()
	if n, err := dial().Read(make([]byte, 1)); err == nil {
		t.Errorf("a connection that was closed twice counted twice: %d bytes came", n)
	}
}

// TestSnapshotsLeaveNothingBehind: a client that goes leaves no file, and the next
// one is served.
func TestSnapshotsLeaveNothingBehind(t *testing.T) {
	scratch := t.TempDir()
	w := newWorld(t, 1, Config{Scratch: scratch})
	w.put(t, "k", bytes.Repeat([]byte("v"), 1<<20))
	for range 2 {
		ctx, cancel := context.WithCancel(w.ctx)
		stream, err := w.Snapshot(ctx, &etcdpb.SnapshotRequest{})
		if err != nil {
			t.Fatal(err)
		}
		if r, err := stream.Recv(); err != nil || r.RemainingBytes < 1<<20 || r.Header.Revision != 2 {
			t.Fatalf("%d bytes remain, %v", r.GetRemainingBytes(), err)
		}
		cancel()
	}
	testwait.For(t, func() error {
		left, err := os.ReadDir(scratch)
		if err == nil && len(left) > 0 {
			err = fmt.Errorf("%v is left", left)
		}
		return err
	})
}
