package etcd

import (
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/etcd/etcdpb"
	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/node"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
)

// guarded is a world in which the only anchor must approve what lies below secret/.
func guarded(t *testing.T, window time.Duration) *world {
	return newWorld(t, 1, Config{}, func(p *scope.Policy) {
		p.Approvals = []scope.Approval{{Matter: scope.Changes, Prefix: []byte("secret/"), Num: 1, Den: 2, Window: window}}
	})
}

// opened waits for a motion that is open.
func (w *world) opened(t *testing.T) node.Motion {
	t.Helper()
	for {
		changed := w.node.Changed() // before reading, so that nothing falls in between
		all, _, err := w.node.Motions(false)
		if err != nil {
			t.Fatal(err)
		}
		if len(all) > 0 {
			return all[0]
		}
		select {
		case <-changed:
		case <-w.ctx.Done():
			t.Fatal("no motion opens")
		}
	}
}

// TestWritesWaitForApproval: to a client of etcd a write that takes approval is
// only slow, and is answered as if it had applied at once.
func TestWritesWaitForApproval(t *testing.T) {
	t.Parallel()
	w := guarded(t, time.Hour)
	decide := func(c votes.Choice) {
		t.Helper()
		m := w.opened(t)
		if _, err := w.node.Vote(w.ctx, m.ID[:], c, ""); err != nil {
			t.Error(err)
		}
	}
	key := []byte("secret/a")
	done := make(chan error, 1)
	var header metadata.MD
	var put *etcdpb.PutResponse
	go func() {
		var err error
		put, err = w.Put(w.ctx, &etcdpb.PutRequest{Key: key, Value: []byte("1")}, grpc.Header(&header))
		done <- err
	}()
	id := w.opened(t).ID
	decide(votes.Approve)
	if err := <-done; err != nil || put.Header.Revision != 2 || strings.Join(header.Get(motionHeader), "") != hex.EncodeToString(id[:]) {
		t.Fatalf("%v, %v, %v", put, err, header)
	}

	var txn *etcdpb.TxnResponse
	go func() {
		var err error
		txn, err = w.Txn(w.ctx, &etcdpb.TxnRequest{
			Compare: []*etcdpb.Compare{{Target: etcdpb.Compare_MOD, Key: key, TargetUnion: &etcdpb.Compare_ModRevision{ModRevision: 2}}},
			Success: []*etcdpb.RequestOp{
				{Request: &etcdpb.RequestOp_RequestPut{RequestPut: &etcdpb.PutRequest{Key: key, Value: []byte("2"), PrevKv: true}}},
				{Request: &etcdpb.RequestOp_RequestDeleteRange{RequestDeleteRange: &etcdpb.DeleteRangeRequest{Key: []byte("secret/b")}}},
			},
		})
		done <- err
	}()
	decide(votes.Approve)
	if err := <-done; err != nil || !txn.Succeeded || txn.Header.Revision != 3 ||
		string(txn.Responses[0].GetResponsePut().PrevKv.Value) != "1" || txn.Responses[1].GetResponseDeleteRange().Deleted != 0 {
		t.Fatalf("%v, %v", txn, err)
	}

	// What reads stand before and after, they find.
	read := &etcdpb.RequestOp{Request: &etcdpb.RequestOp_RequestRange{RequestRange: &etcdpb.RangeRequest{Key: key}}}
	change := &etcdpb.RequestOp{Request: &etcdpb.RequestOp_RequestPut{RequestPut: &etcdpb.PutRequest{Key: key, Value: []byte("3")}}}
	other := &etcdpb.RequestOp{Request: &etcdpb.RequestOp_RequestPut{RequestPut: &etcdpb.PutRequest{Key: []byte("secret/c")}}}
	for want, ops := range map[string][]*etcdpb.RequestOp{
		"2": {read, change, other}, "3": {other, change, read},
	} {
		value := func(n int) string { return string(txn.Responses[n].GetResponseRange().Kvs[0].Value) }
		go func() {
			var err error
			txn, err = w.Txn(w.ctx, &etcdpb.TxnRequest{Success: ops})
			done <- err
		}()
		decide(votes.Approve)
		if err := <-done; err != nil || want == "2" && value(0) != want || want == "3" && value(2) != want {
			t.Fatalf("%v, %v", txn, err)
		}
		reset(t, w, key, decide, done)
	}
	go func() {
		_, err := w.Txn(w.ctx, &etcdpb.TxnRequest{Success: []*etcdpb.RequestOp{
			{Request: &etcdpb.RequestOp_RequestDeleteRange{RequestDeleteRange: &etcdpb.DeleteRangeRequest{Key: []byte("secret/d"), RangeEnd: []byte("secret/e")}}},
			{Request: &etcdpb.RequestOp_RequestRange{RequestRange: &etcdpb.RangeRequest{Key: []byte("secret/"), RangeEnd: []byte("secret0")}}},
			change,
		}})
		done <- err
	}()
	decide(votes.Approve)
	if err := <-done; status.Code(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), "between two changes") {
		t.Fatalf("a read between two changes: %v", err)
	}

	var del *etcdpb.DeleteRangeResponse
	go func() {
		var err error
		del, err = w.DeleteRange(w.ctx, &etcdpb.DeleteRangeRequest{Key: []byte("secret/"), RangeEnd: []byte("secret0"), PrevKv: true})
		done <- err
	}()
	decide(votes.Reject)
	if err := <-done; status.Code(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), "not carried, and nothing changed: rejected") {
		t.Fatalf("%v, %v", del, err)
	}
	if _, err := w.Put(metadata.AppendToOutgoingContext(w.ctx, noWait, "1"), &etcdpb.PutRequest{Key: key}); status.Code(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), "waits for approval as motion") {
		t.Errorf("without waiting: %v", err)
	}
	soon, cancel := context.WithTimeout(w.ctx, 2*time.Second)
	defer cancel()
	_, err := w.Put(soon, &etcdpb.PutRequest{Key: []byte("secret/c")})
	if soon.Err() != nil || status.Code(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), "waits for approval as motion") {
		t.Errorf("with a deadline: %v", err)
	}
	w.put(t, "plain", nil)
}

// TestClientsHearWhatTheirWritesWaitFor: of a motion that is approved the deadline says nothing any more.
func TestClientsHearWhatTheirWritesWaitFor(t *testing.T) {
	m := node.Motion{Opening: &scope.Motion{Deadline: aweigh.InstantOf(time.Unix(1795238989, 0))}}
	const until = "and may apply until 2026-11-21T05:29:49Z"
	if s := waits("id", &m); !strings.Contains(s, "waits for approval as motion id, "+until) {
		t.Error(s)
	}
	if s := waits("id", &node.Motion{}); !strings.Contains(s, "and may apply; see") {
		t.Error(s)
	}
	m.Approved = 17
	if s := waits("id", &m); !strings.Contains(s, "approved as motion id, and waits for its turn") || strings.Contains(s, "until") {
		t.Error(s)
	}
}

// reset puts the value back that a key had.
func reset(t *testing.T, w *world, key []byte, decide func(votes.Choice), done chan error) {
	t.Helper()
	go func() {
		_, err := w.Put(w.ctx, &etcdpb.PutRequest{Key: key, Value: []byte("2")})
		done <- err
	}()
	decide(votes.Approve)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

// TestMotionsExpireForTheirClients: who waits hears that the time is over.
func TestMotionsExpireForTheirClients(t *testing.T) {
	testshort.Skip(t)
	t.Parallel()
	w := guarded(t, time.Second)
	_, err := w.Put(w.ctx, &etcdpb.PutRequest{Key: []byte("secret/a")})
	if status.Code(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), "expired") {
		t.Errorf("%v", err)
	}
}

// TestGatewaysClientsHearOfMotions: HTTP/1 has one header, with the answer. A client of the gateway that names no time
// hears within a bound that its write waits, and for which motion.
func TestGatewaysClientsHearOfMotions(t *testing.T) {
	testshort.Skip(t)
	t.Parallel()
	w := guarded(t, time.Hour)
	ctx, cancel := context.WithTimeout(w.ctx, 2*gatewayWaits)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, "POST", "http://"+w.server.Addr()+"/v3/kv/put", strings.NewReader(`{"key":"c2VjcmV0L2E="}`))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := browser(t, nil).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	m := w.opened(t)
	id := hex.EncodeToString(m.ID[:])
	if err != nil || resp.StatusCode != 400 || !strings.Contains(string(text), "waits for approval as motion "+id) || resp.Header.Get("Grpc-Metadata-"+motionHeader) != id {
		t.Errorf("%v, %s, %v: %s", err, resp.Status, resp.Header, text)
	}
}

// TestLeasesUnderApprovalAreRefusedInWords: a put whose lease would delete without approval is the caller's to mend,
// and no unknown fault.
func TestLeasesUnderApprovalAreRefusedInWords(t *testing.T) {
	w := guarded(t, time.Hour)
	l, err := w.LeaseGrant(w.ctx, &etcdpb.LeaseGrantRequest{TTL: 60})
	if err != nil {
		t.Fatal(err)
	}
	_, err = w.Put(w.ctx, &etcdpb.PutRequest{Key: []byte("secret/a"), Lease: l.ID})
	if status.Code(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), "put it without a lease") {
		t.Errorf("%v", err)
	}
	if code, text := ask(t, browser(t, nil), "POST", "http://"+w.server.Addr()+"/v3/kv/put", fmt.Sprintf(`{"key":"c2VjcmV0L2E=","lease":%d}`, l.ID)); code != 400 {
		t.Errorf("by the gateway: %d %s", code, text)
	}
}
