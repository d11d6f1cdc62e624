package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"

	"github.com/aweigh/aweigh/etcd/etcdpb"
	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/internal/testwait"
)

// exposes scrapes until all samples, named as in Prometheus, have their values: what a
// client knows already may be counted a moment later.
func exposes(t *testing.T, address string, want map[string]float64) map[string]*dto.MetricFamily {
	t.Helper()
	var families map[string]*dto.MetricFamily
	testwait.For(t, func() error {
		families = scrape(t, address)
		samples := samplesOf(families)
		var wrong []string
		for name, v := range want {
			if got, ok := samples[name]; !ok || got != v {
				wrong = append(wrong, fmt.Sprintf("%s is %v (%v), not %v", name, got, ok, v))
			}
		}
		if len(wrong) > 0 {
			slices.Sort(wrong)
			return errors.New(strings.Join(wrong, "\n"))
		}
		return nil
	})
	return families
}

// samplesOf are the values of all samples that are no histograms, by name and labels.
func samplesOf(families map[string]*dto.MetricFamily) map[string]float64 {
	all := make(map[string]float64)
	for name, f := range families {
		for _, m := range f.Metric {
			var labels []string
			for _, l := range m.Label {
				labels = append(labels, l.GetName()+"="+l.GetValue())
			}
			full := name
			if len(labels) > 0 {
				full += "{" + strings.Join(labels, ",") + "}"
			}
			switch {
			case m.Counter != nil:
				all[full] = m.Counter.GetValue()
			case m.Gauge != nil:
				all[full] = m.Gauge.GetValue()
			}
		}
	}
	return all
}

func put(key string) *etcdpb.PutRequest {
	return &etcdpb.PutRequest{Key: []byte(key), Value: []byte("v")}
}

// TestEtcdsNamesMeanWhatTheyMeanInEtcd: after traffic that is known, a dashboard of
// etcd's shows that traffic, and the values of the API.
func TestEtcdsNamesMeanWhatTheyMeanInEtcd(t *testing.T) {
	t.Parallel()
	testshort.Skip(t)
	r := newRunning(t, 2)
	d := r.on[0]
	for _, x := range r.on {
		until(t, x.API(), "/readyz", http.StatusOK)
	}
	conn, err := grpc.NewClient(d.etcdAddr(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	kv, maintenance := etcdpb.NewKVClient(conn), etcdpb.NewMaintenanceClient(conn)
	exposes(t, d.API(), map[string]float64{
		"etcd_server_has_leader": 1, "etcd_debugging_mvcc_compact_revision": -1, "etcd_debugging_mvcc_watcher_total": 0,
		"etcd_network_client_grpc_received_bytes_total": 0, "etcd_network_client_grpc_sent_bytes_total": 0,
		"grpc_server_handled_total{grpc_code=NotFound,grpc_method=Put,grpc_service=etcdserverpb.KV,grpc_type=unary}": 0,
	})

	in, out, rev := 0, 0, int64(0)
	for range 7 {
		a, err := kv.Put(ctx, put("a"))
		if err != nil {
			t.Fatal(err)
		}
		in, out, rev = in+proto.Size(put("a")), out+proto.Size(a), a.Header.Revision
	}
	leased := put("a")
	leased.Lease = 4711
	if _, err := kv.Put(ctx, leased); err == nil {
		t.Fatal("a put under a lease that there is not")
	}
	compacted, err := kv.Compact(ctx, &etcdpb.CompactionRequest{Revision: rev - 1})
	if err != nil {
		t.Fatal(err)
	}
	in, out = in+proto.Size(leased)+proto.Size(&etcdpb.CompactionRequest{Revision: rev - 1}), out+proto.Size(compacted)
	const handled = "grpc_server_handled_total{grpc_code=%s,grpc_method=%s,grpc_service=etcdserverpb.%s,grpc_type=%s}"
	const started = "grpc_server_started_total{grpc_method=%s,grpc_service=etcdserverpb.%s,grpc_type=%s}"
	exposes(t, d.API(), map[string]float64{
		fmt.Sprintf(handled, "OK", "Put", "KV", "unary"):       7,
		fmt.Sprintf(handled, "NotFound", "Put", "KV", "unary"): 1,
		fmt.Sprintf(handled, "Unknown", "Put", "KV", "unary"):  0,
		fmt.Sprintf(started, "Put", "KV", "unary"):             8,
		fmt.Sprintf(handled, "OK", "Compact", "KV", "unary"):   1,
		fmt.Sprintf(started, "Range", "KV", "unary"):           0,
		"etcd_network_client_grpc_received_bytes_total":        float64(in),
		"etcd_network_client_grpc_sent_bytes_total":            float64(out),
		"etcd_debugging_mvcc_current_revision":                 float64(rev),
		"etcd_debugging_mvcc_compact_revision":                 float64(rev - 1),
		"etcd_server_proposals_pending":                        0,
		"etcd_server_proposals_failed_total":                   0,
	})

	watch, err := etcdpb.NewWatchClient(conn).Watch(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"a", "b"} {
		create := &etcdpb.WatchCreateRequest{Key: []byte(key)}
		if err := watch.Send(&etcdpb.WatchRequest{RequestUnion: &etcdpb.WatchRequest_CreateRequest{CreateRequest: create}}); err != nil {
			t.Fatal(err)
		}
		if _, err := watch.Recv(); err != nil {
			t.Fatal(err)
		}
	}
	s, err := maintenance.Status(ctx, &etcdpb.StatusRequest{})
	if err != nil {
		t.Fatal(err)
	}
	members, err := etcdpb.NewClusterClient(conn).MemberList(ctx, &etcdpb.MemberListRequest{})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]float64{
		"etcd_debugging_mvcc_watcher_total":                            2,
		fmt.Sprintf(started, "Watch", "Watch", "bidi_stream"):          1,
		fmt.Sprintf(handled, "OK", "Watch", "Watch", "bidi_stream"):    0,
		"etcd_server_is_learner":                                       0,
		"etcd_server_proposals_committed_total":                        float64(s.RaftIndex),
		"etcd_server_proposals_applied_total":                          float64(s.RaftAppliedIndex),
		"etcd_server_version{server_version=" + s.Version + "}":        1,
		"etcd_cluster_version{cluster_version=3.6}":                    1,
		fmt.Sprintf("etcd_server_id{server_id=%x}", s.Header.MemberId): 1,
	}
	var other string
	for _, m := range members.Members {
		if m.ID != s.Header.MemberId {
			other = fmt.Sprintf("etcd_network_active_peers{Local=%x,Remote=%x}", s.Header.MemberId, m.ID)
			want[other] = 1
		}
	}
	families := exposes(t, d.API(), want)

	sizes := samplesOf(families)
	total, used := sizes["etcd_mvcc_db_total_size_in_bytes"], sizes["etcd_mvcc_db_total_size_in_use_in_bytes"]
	if total != sizes["aweigh_store_disk_bytes"] || used <= 0 || used > total {
		t.Errorf("%v bytes, of which %v are in use", total, used)
	}
	if math.Abs(total-float64(s.DbSize)) > 64<<10 || math.Abs(used-float64(s.DbSizeInUse)) > 64<<10 {
		t.Errorf("the API says %d bytes, of which %d are in use, and the metrics %v and %v", s.DbSize, s.DbSizeInUse, total, used)
	}
	for _, name := range []string{"etcd_disk_wal_fsync_duration_seconds", "aweigh_store_sync_seconds"} {
		h := families[name].GetMetric()[0].GetHistogram()
		if n := float64(h.GetSampleCount()); n == 0 || n != sizes["aweigh_store_syncs_total"] {
			t.Errorf("%s counts %v, of %v", name, n, sizes["aweigh_store_syncs_total"])
		}
		bounds := make(map[float64]bool)
		for _, b := range h.Bucket {
			bounds[b.GetUpperBound()] = true
		}
		for i := range 14 {
			delete(bounds, 0.001*float64(int(1)<<i))
		}
		if left := slices.Sorted(maps.Keys(bounds)); len(h.Bucket) != 15 || len(left) != 1 || !math.IsInf(left[0], 1) {
			t.Errorf("%s has %d bounds; not those of etcd are %v", name, len(h.Bucket), left)
		}
	}

	r.down(1)
	exposes(t, d.API(), map[string]float64{"etcd_server_has_leader": 0, other: 0})
	short, end := context.WithTimeout(ctx, 300*time.Millisecond)
	defer end()
	if _, err := kv.Put(short, put("a")); err == nil {
		t.Error("a put without a quorum")
	}
	again, end := context.WithTimeout(ctx, 300*time.Millisecond)
	defer end()
	if _, err := kv.Range(again, &etcdpb.RangeRequest{Key: []byte("a")}); err == nil {
		t.Error("a linearizable read without a quorum")
	}
	exposes(t, d.API(), map[string]float64{
		"etcd_server_proposals_failed_total": 1, "etcd_server_read_indexes_failed_total": 1,
		"etcd_server_proposals_pending":                        1,
		fmt.Sprintf(handled, "OK", "Put", "KV", "unary"):       7,
		fmt.Sprintf(handled, "NotFound", "Put", "KV", "unary"): 1,
		fmt.Sprintf(started, "Put", "KV", "unary"):             9,
	})
}

// TestEtcdsNamesOfThePortComeWithThePort: a port that is not served is not counted.
func TestEtcdsNamesOfThePortComeWithThePort(t *testing.T) {
	t.Parallel()
	dir, s := founded(t)
	d, err := Open(dir, s, "", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	until(t, d.API(), "/readyz", http.StatusOK)
	families := exposes(t, d.API(), map[string]float64{"etcd_server_has_leader": 1})
	for _, name := range []string{"etcd_server_version", "etcd_server_id", "etcd_debugging_mvcc_watcher_total", "grpc_server_started_total", "grpc_server_handled_total"} {
		if families[name] != nil {
			t.Errorf("%s of a node without the port", name)
		}
	}
}
