package etcd

import (
	"testing"

	"google.golang.org/grpc"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/aweigh/aweigh/etcd/etcdpb"
)

// TestEveryMethodStatesWhatItReads: the table has a row for each method that is served, and no other.
func TestEveryMethodStatesWhatItReads(t *testing.T) {
	methods := make(map[string]bool)
	for _, d := range []grpc.ServiceDesc{
		etcdpb.KV_ServiceDesc, etcdpb.Lease_ServiceDesc, etcdpb.Lock_ServiceDesc, etcdpb.Election_ServiceDesc,
		etcdpb.Watch_ServiceDesc, etcdpb.Cluster_ServiceDesc, etcdpb.Auth_ServiceDesc, etcdpb.Maintenance_ServiceDesc,
		healthpb.Health_ServiceDesc,
	} {
		for _, m := range d.Methods {
			methods["/"+d.ServiceName+"/"+m.MethodName] = true
		}
		for _, m := range d.Streams {
			methods["/"+d.ServiceName+"/"+m.StreamName] = true
		}
	}
	for name := range methods {
		if sights[name] == nil {
			t.Errorf("%s does not state what it reads", name)
		}
	}
	for name := range sights {
		if !methods[name] {
			t.Errorf("there is no method %s", name)
		}
	}
}

// TestReadsAreSeen: every request whose answer shows content, or whether something holds of it, counts as a read.
func TestReadsAreSeen(t *testing.T) {
	a := []byte("/a")
	within := &etcdpb.TxnRequest{Failure: []*etcdpb.RequestOp{{Request: &etcdpb.RequestOp_RequestDeleteRange{
		RequestDeleteRange: &etcdpb.DeleteRangeRequest{Key: a, PrevKv: true},
	}}}}
	nested := &etcdpb.TxnRequest{Success: []*etcdpb.RequestOp{{Request: &etcdpb.RequestOp_RequestTxn{RequestTxn: within}}}}
	for name, x := range map[string]struct {
		method  string
		request any
		reads   bool
		key     string
	}{
		"a range":           {etcdpb.KV_Range_FullMethodName, &etcdpb.RangeRequest{Key: a}, true, ""},
		"a put":             {etcdpb.KV_Put_FullMethodName, &etcdpb.PutRequest{Key: a}, false, ""},
		"one with prev_kv":  {etcdpb.KV_Put_FullMethodName, &etcdpb.PutRequest{Key: a, PrevKv: true}, true, ""},
		"a deletion":        {etcdpb.KV_DeleteRange_FullMethodName, &etcdpb.DeleteRangeRequest{Key: a, PrevKv: true}, true, ""},
		"a transaction":     {etcdpb.KV_Txn_FullMethodName, &etcdpb.TxnRequest{Success: []*etcdpb.RequestOp{putOp("/a")}}, false, ""},
		"one that compares": {etcdpb.KV_Txn_FullMethodName, &etcdpb.TxnRequest{Compare: []*etcdpb.Compare{createdAt("/a", 0)}}, true, ""},
		"one within":        {etcdpb.KV_Txn_FullMethodName, nested, true, ""},
		"a lease":           {etcdpb.Lease_LeaseTimeToLive_FullMethodName, &etcdpb.LeaseTimeToLiveRequest{ID: 1}, false, ""},
		"its keys":          {etcdpb.Lease_LeaseTimeToLive_FullMethodName, &etcdpb.LeaseTimeToLiveRequest{ID: 1, Keys: true}, true, ""},
		"a leader":          {etcdpb.Election_Leader_FullMethodName, &etcdpb.LeaderRequest{Name: a}, true, "/a/"},
		"leaders":           {etcdpb.Election_Observe_FullMethodName, &etcdpb.LeaderRequest{Name: a}, true, "/a/"},
		"a campaign":        {etcdpb.Election_Campaign_FullMethodName, &etcdpb.CampaignRequest{Name: a}, false, "/a/"},
		"a lock":            {etcdpb.Lock_Lock_FullMethodName, &etcdpb.LockRequest{Name: a}, false, "/a/"},
		"a snapshot":        {etcdpb.Maintenance_Snapshot_FullMethodName, &etcdpb.SnapshotRequest{}, true, ""},
	} {
		reads, keys := sights[x.method](x.request)
		var key string
		if len(keys) > 0 {
			key = string(keys[0].Key)
		}
		if reads != x.reads || key != x.key {
			t.Errorf("%s: it reads: %v, of %q; want %v, %q", name, reads, key, x.reads, x.key)
		}
	}
}
