package etcdcompat

import (
	"bufio"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// exposed is what an address serves to Prometheus.
type exposed struct {
	types   map[string]string
	labels  map[string][]string // by the name of the sample
	samples map[string]string   // by name and labels
}

var (
	typeLine   = regexp.MustCompile(`^# TYPE (\S+) (\S+)$`)
	sampleLine = regexp.MustCompile(`^([a-zA-Z0-9_:]+)(\{.*\})? (\S+)$`)
	labelName  = regexp.MustCompile(`([a-zA-Z0-9_]+)="`)
)

func expose(t *testing.T, address string) exposed {
	t.Helper()
	r, err := http.Get("http://" + address + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	e := exposed{make(map[string]string), make(map[string][]string), make(map[string]string)}
	lines := bufio.NewScanner(r.Body)
	for lines.Scan() {
		if x := typeLine.FindStringSubmatch(lines.Text()); x != nil {
			e.types[x[1]] = x[2]
		} else if x := sampleLine.FindStringSubmatch(lines.Text()); x != nil {
			var names []string
			for _, l := range labelName.FindAllStringSubmatch(x[2], -1) {
				names = append(names, l[1])
			}
			slices.Sort(names)
			e.labels[x[1]], e.samples[x[1]+x[2]] = names, x[3]
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return e
}

// TestMetricsAreThoseOfEtcd: under etcd's names there is what etcd has there, type,
// labels and buckets, and after the same traffic the same values.
func TestMetricsAreThoseOfEtcd(t *testing.T) {
	etcd := startEtcd(t)
	shown := freeAddress(t)
	address, _ := startNode(t, "--metrics-listen", shown)
	aweigh := &system{name: "aweigh"}
	aweigh.dial(t, address)
	aweigh.greet(t)

	for _, s := range []*system{etcd, aweigh} {
		kv, lease := etcdserverpb.NewKVClient(s.conn(0)), etcdserverpb.NewLeaseClient(s.conn(0))
		for i := range 5 {
			if _, err := kv.Put(t.Context(), &etcdserverpb.PutRequest{Key: []byte("a"), Value: fmt.Append(nil, i)}); err != nil {
				t.Fatal(err)
			}
		}
		_, put := kv.Put(t.Context(), &etcdserverpb.PutRequest{Key: []byte("a"), Lease: 4711})
		_, empty := kv.Put(t.Context(), &etcdserverpb.PutRequest{})
		_, compact := kv.Compact(t.Context(), &etcdserverpb.CompactionRequest{Revision: 4})
		_, again := kv.Compact(t.Context(), &etcdserverpb.CompactionRequest{Revision: 3})
		_, read := kv.Range(t.Context(), &etcdserverpb.RangeRequest{Key: []byte("a"), Revision: 1})
		_, revoke := lease.LeaseRevoke(t.Context(), &etcdserverpb.LeaseRevokeRequest{ID: 4711})
		for i, err := range []error{put, empty, again, read, revoke} {
			if status.Code(err) == codes.OK {
				t.Errorf("%s: error %d is none", s.name, i)
			}
		}
		if compact != nil {
			t.Errorf("%s: %v", s.name, compact)
		}
		stream, err := etcdserverpb.NewWatchClient(s.conn(0)).Watch(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		create := &etcdserverpb.WatchRequest_CreateRequest{CreateRequest: &etcdserverpb.WatchCreateRequest{Key: []byte("a")}}
		if err := stream.Send(&etcdserverpb.WatchRequest{RequestUnion: create}); err != nil {
			t.Fatal(err)
		}
		if _, err := stream.Recv(); err != nil {
			t.Fatal(err)
		}
	}

	same := regexp.MustCompile(`^(grpc_server_(started|handled)_total\{.*grpc_service="etcdserverpb\.(KV|Lease|Watch)"|` +
		`etcd_debugging_mvcc_(current_revision|compact_revision|watcher_total)$|etcd_network_client_grpc_received_bytes_total$|` +
		`etcd_server_(has_leader|is_learner|proposals_pending|proposals_failed_total|read_indexes_failed_total|version)|etcd_cluster_version)`)
	var wrong []string
	compared := 0
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		theirs, ours := expose(t, etcd.addresses[0]), expose(t, shown)
		wrong, compared = nil, 0
		for name, kind := range ours.types {
			if !strings.HasPrefix(name, "etcd_") && !strings.HasPrefix(name, "grpc_") {
				continue
			}
			if theirs.types[name] != kind {
				wrong = append(wrong, fmt.Sprintf("%s is a %s, and etcd's is a %q", name, kind, theirs.types[name]))
			}
			if kind == "histogram" {
				name += "_bucket"
			}
			if !slices.Equal(ours.labels[name], theirs.labels[name]) {
				wrong = append(wrong, fmt.Sprintf("%s has the labels %q, and etcd's %q", name, ours.labels[name], theirs.labels[name]))
			}
		}
		for sample, value := range ours.samples {
			their, ok := theirs.samples[sample]
			if strings.HasPrefix(sample, "etcd_disk_wal_fsync_duration_seconds_bucket") && !ok {
				wrong = append(wrong, "etcd has no "+sample)
			}
			if same.MatchString(sample) {
				if compared++; value != their {
					wrong = append(wrong, fmt.Sprintf("%s is %s, and etcd's is %q", sample, value, their))
				}
			}
		}
		if len(wrong) == 0 && compared > 200 {
			return
		}
	}
	slices.Sort(wrong)
	t.Errorf("of %d that were compared, wrong are\n%s", compared, strings.Join(wrong, "\n"))
}
