package daemon

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/etcd/etcdpb"
	"github.com/aweigh/aweigh/internal/testshort"
)

// TestRefusalsAreRecorded: refused requests to both ports, and reads where the settings say so, are in the record with
// their callers, and without values.
func TestRefusalsAreRecorded(t *testing.T) {
	t.Parallel()
	testshort.Skip(t)
	r := newRunning(t, 1)
	r.down(0)
	r.set[0].AuditFile, r.set[0].AuditLevels = "audit.jsonl", []string{"/a/=request"}
	r.up(0)
	p := newPorts(t, r.on[0])
	value := []byte("hidden-value")
	for _, key := range []string{"/a/1", "/b/1"} {
		must[*etcdpb.PutResponse](t)(etcdpb.NewKVClient(p.etcd).Put(p.ctx,
			&etcdpb.PutRequest{Key: []byte(key), Value: value}))
	}
	p.enable()
	reader := p.token("reader")
	api, kv := p.api(reader), etcdpb.NewKVClient(p.etcd)
	var want []string
	refused := func(line string, err error) {
		t.Helper()
		if err == nil {
			t.Errorf("%s is not refused", line)
		}
		want = append(want, line)
	}
	done := func(line string, err error) {
		t.Helper()
		if err != nil {
			t.Errorf("%s: %v", line, err)
		}
		want = append(want, line)
	}
	refused("refused user:reader api aweigh.v1.Node/Put /b/1",
		asks(api.Put, p.ctx, &aweighv1.PutRequest{Key: []byte("/b/1"), Value: value}))
	done("done user:reader api aweigh.v1.Node/Range /a/1", asks(api.Range, p.ctx,
		&aweighv1.RangeRequest{Key: []byte("/a/1")}))
	done("begun user:reader api aweigh.v1.Node/Watch /a/1", streamed(api.Watch, p.ctx,
		&aweighv1.WatchRequest{Key: []byte("/a/1")}))
	done("begun user:reader api aweigh.v1.Node/Tail /a/ /a0",
		streamed(api.Tail, p.ctx, &aweighv1.TailRequest{Prefix: []byte("/a/")}))
	refused("refused user:reader api aweigh.v1.Node/Tail", streamed(api.Tail, p.ctx, &aweighv1.TailRequest{}))
	refused("refused user:reader api aweigh.v1.Node/Tail /b/ /b0",
		streamed(api.Tail, p.ctx, &aweighv1.TailRequest{Prefix: []byte("/b/")}))
	refused("refused anonymous api aweigh.v1.Node/Range /b/1",
		asks(p.api("").Range, p.ctx, &aweighv1.RangeRequest{Key: []byte("/b/1")}))
	refused("refused  api aweigh.v1.Node/Range", asks(p.api("bad.token.x").Range, p.ctx,
		&aweighv1.RangeRequest{Key: []byte("/b/1")}))
	_, err := kv.Range(p.as(reader), &etcdpb.RangeRequest{Key: []byte("/b/1"), RangeEnd: []byte("/b/9")})
	refused("refused user:reader etcd etcdserverpb.KV/Range /b/1 /b/9", err)
	_, err = kv.Range(p.as(reader), &etcdpb.RangeRequest{Key: []byte("/a/1")})
	done("done user:reader etcd etcdserverpb.KV/Range /a/1", err)
	both := p.as(p.token("root"))
	_, err = kv.Put(both, &etcdpb.PutRequest{Key: []byte("/a/1"), Value: value, PrevKv: true})
	done("done user:root etcd etcdserverpb.KV/Put /a/1", err)
	_, err = kv.Txn(both, &etcdpb.TxnRequest{Compare: []*etcdpb.Compare{{Key: []byte("/a/1"), Target: etcdpb.Compare_VALUE,
		TargetUnion: &etcdpb.Compare_Value{Value: value}}}})
	done("done user:root etcd etcdserverpb.KV/Txn /a/1", err)
	_, err = kv.Put(both, &etcdpb.PutRequest{Key: []byte("/a/v/1"), Value: value})
	if err != nil {
		t.Fatal(err)
	}
	_, err = etcdpb.NewElectionClient(p.etcd).Leader(both, &etcdpb.LeaderRequest{Name: []byte("/a/v")})
	done("done user:root etcd v3electionpb.Election/Leader /a/v/ /a/v0", err)
	watching, stop := context.WithCancel(both)
	observed, err := etcdpb.NewElectionClient(p.etcd).Observe(watching, &etcdpb.LeaderRequest{Name: []byte("/a/v")})
	if err == nil {
		_, err = observed.Recv()
	}
	stop()
	done("begun user:root etcd v3electionpb.Election/Observe /a/v/ /a/v0", err)
	done("done user:root api aweigh.v1.Node/Put /a/1", asks(p.api(p.token("root")).Put, p.ctx,
		&aweighv1.PutRequest{Key: []byte("/a/1"), Value: value, PrevKv: true}))
	_, err = kv.Put(p.ctx, &etcdpb.PutRequest{Key: []byte("/b/1"), Value: value})
	refused("refused anonymous etcd etcdserverpb.KV/Put /b/1", err)
	_, err = etcdpb.NewAuthClient(p.etcd).Authenticate(p.ctx,
		&etcdpb.AuthenticateRequest{Name: "reader", Password: "hidden-guess"})
	refused("refused anonymous etcd etcdserverpb.Auth/Authenticate", err)
	done("",
		asks(p.api(p.token("root")).Range, p.ctx, &aweighv1.RangeRequest{Key: []byte("/b/1")})) // at the default level
	r.down(0) // which writes what waits
	raw, err := os.ReadFile(filepath.Join(string(r.dirs[0]), "audit.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for text := range strings.Lines(string(raw)) {
		var x struct {
			Outcome, Caller, Port, Call string
			Keys                        []struct {
				Key string
				End string `json:"range_end"`
			}
		}
		if err := json.Unmarshal([]byte(text), &x); err != nil {
			t.Fatal(err)
		}
		line := fmt.Sprintf("%s %s %s %s", x.Outcome, x.Caller, x.Port, x.Call)
		for _, k := range x.Keys {
			line += strings.TrimRight(" "+k.Key+" "+k.End, " ")
		}
		got = append(got, line)
	}
	if got, want := strings.Join(got, "\n"), strings.Join(want[:len(want)-1], "\n"); got != want {
		t.Errorf("recorded\n%s\n\nwant\n%s", got, want)
	}
	if strings.Contains(string(raw), "hidden-") || strings.Contains(string(raw), reader) {
		t.Errorf("the record has a secret:\n%s", raw)
	}
}
