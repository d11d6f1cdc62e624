package etcdcompat

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"
)

// asked is a request of HTTP/1, and what is compared of its answer.
type asked struct {
	method, path, body string
	header             map[string]string
	loose              bool // the text differs, as where it names the system; the code and the type do not
}

// answered is what is compared.
type answered struct {
	Code   int
	Type   string
	Allow  string
	Body   any    // of JSON, without what names the cluster
	Plain  string // of anything else
	header map[string]any
}

func (s *system) http(t *testing.T, q asked) (a answered) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, q.method, "http://"+s.addresses[0]+q.path, strings.NewReader(q.body))
	if err != nil {
		t.Fatal(err)
	}
	for k, v := range q.header {
		r.Header.Set(k, v)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatalf("%s: %v", s.name, err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("%s: %v", s.name, err)
	}
	a = answered{Code: resp.StatusCode, Type: resp.Header.Get("Content-Type"), Allow: resp.Header.Get("Allow")}
	if json.Unmarshal(text, &a.Body) != nil {
		a.Body, a.Plain = nil, string(text)
	}
	if m, ok := a.Body.(map[string]any); ok {
		a.header, _ = m["header"].(map[string]any)
	}
	bare(a.Body)
	return a
}

// bare takes away what no two clusters have alike, and keeps its type.
func bare(x any) {
	switch x := x.(type) {
	case map[string]any:
		for k, v := range x {
			switch k {
			case "cluster_id", "member_id", "raft_term", "ID", "memberID", "hash", "peerURLs", "clientURLs", "name":
				x[k] = fmt.Sprintf("%T", v)
			case "token":
				x[k] = len(v.(string)) > 0
			default:
				bare(v)
			}
		}
	case []any:
		for i := range x {
			bare(x[i])
		}
	}
}

func b64(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }

func post(path, format string, args ...any) asked {
	return asked{method: "POST", path: path, body: fmt.Sprintf(format, args...)}
}

// TestHTTPAnswersAsEtcd: requests of probes and of the JSON gateway have the codes, types and bodies that etcd gives
// them.
func TestHTTPAnswersAsEtcd(t *testing.T) {
	etcd, aweigh := startEtcd(t), startAweigh(t, 1)
	a, b, c := b64("/p/a"), b64("/p/b"), b64("/p/c")
	for _, q := range []asked{
		{method: "GET", path: "/health"},
		{method: "GET", path: "/health?serializable=true&exclude=NOSPACE"},
		{method: "POST", path: "/health"},
		{method: "GET", path: "/livez"}, {method: "GET", path: "/livez?verbose"}, {method: "GET", path: "/livez/serializable_read"},
		{method: "GET", path: "/readyz"}, {method: "GET", path: "/readyz/linearizable_read"}, {method: "GET", path: "/readyz/non_learner"},
		{method: "GET", path: "/readyz?exclude=linearizable_read"}, {method: "PUT", path: "/readyz"}, {method: "GET", path: "/readyz/other"},
		{method: "GET", path: "/version"}, {method: "POST", path: "/version"}, {method: "GET", path: "/"}, {method: "GET", path: "/other"},
		{method: "GET", path: "/v3/kv/range"}, post("/v3/kv/other", "{}"),
		post("/v3/kv/put", `{"key":"%s","value":"%s"}`, a, b64("1")),
		post("/v3/kv/put", `{"key":"%s","value":"%s","prev_kv":true}`, a, b64("2")),
		post("/v3/kv/put", `{"key":"%s","value":"","prevKv":true}`, a),
		post("/v3/kv/range", `{"key":"%s"}`, a), post("/v3/kv/range", `{"key":"%s","range_end":"%s","limit":"1","sort_order":"DESCEND"}`, a, c),
		post("/v3/kv/range", `{"key":"%s","count_only":true}`, a), post("/v3/kv/range", `{"key":"%s","unknown":{"x":1}}`, a),
		post("/v3/kv/range", `{"key":"%s","revision":"1000"}`, a), post("/v3/kv/range", `{"key":"%s","revision":1}`, a),
		post("/v3/kv/range", `{}`), post("/v3/kv/range", ``), {method: "POST", path: "/v3/kv/range", body: `{"key":`, loose: true}, {method: "POST", path: "/v3/kv/range", body: `{"key":"not base64!"}`, loose: true},
		post("/v3/kv/put", `{}`), post("/v3/kv/put", `{"key":"%s","ignore_value":true}`, b64("/p/none")),
		post("/v3/kv/put", `{"key":"%s","lease":"77"}`, a),
		post("/v3/kv/txn", `{"compare":[{"key":"%s","target":"CREATE","result":"EQUAL","create_revision":"0"}],"success":[{"requestPut":{"key":"%s","value":"%s"}}],"failure":[{"request_range":{"key":"%s"}}]}`, b, b, b64("txn"), b),
		post("/v3/kv/txn", `{"compare":[{"key":"%s","target":"VALUE","value":"%s"}],"success":[{"request_delete_range":{"key":"%s","prev_kv":true}},{"request_txn":{"success":[{"request_put":{"key":"%s"}}]}}]}`, b, b64("txn"), b, c),
		post("/v3/kv/txn", `{"success":[{"request_put":{"key":"%s"}},{"request_put":{"key":"%s"}}]}`, a, a), post("/v3/kv/txn", `{}`),
		post("/v3/kv/deleterange", `{"key":"%s","range_end":"%s","prev_kv":true}`, a, c), post("/v3/kv/deleterange", `{"key":"%s"}`, a),
		post("/v3/lease/grant", `{"TTL":60,"ID":"4711"}`), post("/v3/lease/grant", `{"TTL":"60","ID":4711}`), {method: "POST", path: "/v3/lease/grant", body: `{"TTL":"x"}`, loose: true},
		post("/v3/lease/keepalive", `{"ID":"4711"}`), post("/v3/lease/keepalive", `{"ID":"4712"}`), post("/v3/kv/put", `{"key":"%s","lease":"4711"}`, a),
		post("/v3/lease/leases", `{}`), post("/v3/kv/lease/leases", `{}`),
		post("/v3/lease/revoke", `{"ID":4711}`), post("/v3/kv/lease/revoke", `{"ID":4711}`), post("/v3/lease/timetolive", `{"ID":"4711"}`), post("/v3/kv/lease/timetolive", `{"ID":"4711","keys":true}`),
		post("/v3/kv/compaction", `{"revision":"3"}`), post("/v3/kv/compaction", `{"revision":"3"}`), post("/v3/kv/range", `{"key":"%s","revision":2}`, a),
		post("/v3/cluster/member/list", `{}`), post("/v3/maintenance/alarm", `{}`), post("/v3/maintenance/hash", `{}`), {method: "POST", path: "/v3/maintenance/defragment", body: "{}"},
		post("/v3/auth/status", `{}`), post("/v3/auth/authenticate", `{"name":"root","password":"x"}`), post("/v3/auth/user/list", `{}`), post("/v3/auth/role/list", `{}`),
		post("/v3/auth/user/get", `{"name":"x"}`), post("/v3/auth/enable", `{}`), post("/v3/auth/user/add", `{"name":""}`),
		post("/v3/lock/unlock", `{"key":"%s"}`, a), post("/v3/election/leader", `{"name":"%s"}`, a), post("/v3/election/proclaim", `{}`),
		{method: "POST", path: "/v3/kv/range", body: fmt.Sprintf(`{"key":"%s"}`, a), header: map[string]string{"Content-Type": "application/x-www-form-urlencoded"}},
		{method: "POST", path: "/v3/kv/range", body: fmt.Sprintf(`{"key":"%s"}`, a), header: map[string]string{"Authorization": "no token"}},
		{method: "POST", path: "/v3/kv/put", body: fmt.Sprintf(`{"key":"%s","value":"%s"}`, a, b64(strings.Repeat("x", 3<<19))), loose: true},
	} {
		want, got := etcd.http(t, q), aweigh.http(t, q)
		want.header, got.header = nil, nil
		if q.loose {
			want.Body, got.Body = nil, nil
		}
		if !reflect.DeepEqual(want, got) {
			t.Errorf("%s %s %.200s\nanswers %+v\netcd's  %+v", q.method, q.path, q.body, got, want)
		}
	}
}

// TestHTTPWatchesAsEtcd: a watch by the gateway is a stream of lines, from the beginning, with events as etcd writes
// them.
func TestHTTPWatchesAsEtcd(t *testing.T) {
	var all [2][]any
	for i, s := range []*system{startEtcd(t), startAweigh(t, 1)} {
		key := b64("/w/a")
		s.http(t, post("/v3/kv/put", `{"key":"%s","value":"%s"}`, key, b64("1")))
		at := s.http(t, post("/v3/kv/put", `{"key":"%s","value":"%s"}`, key, b64("2"))).header["revision"]
		resp, err := http.Post("http://"+s.addresses[0]+"/v3/watch", "application/json",
			strings.NewReader(fmt.Sprintf(`{"create_request":{"key":"%s","range_end":"%s","start_revision":"%s","prev_kv":true}}`, b64("/w/"), b64("/w0"), at)))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = resp.Body.Close() })
		if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "application/json" {
			t.Fatalf("%s: %s %s", s.name, resp.Status, resp.Header.Get("Content-Type"))
		}
		lines := bufio.NewScanner(resp.Body)
		next := func() {
			t.Helper()
			if !lines.Scan() {
				t.Fatalf("%s ends: %v", s.name, lines.Err())
			}
			var x any
			if err := json.Unmarshal(lines.Bytes(), &x); err != nil {
				t.Fatalf("%s: %q: %v", s.name, lines.Text(), err)
			}
			bare(x)
			all[i] = append(all[i], x)
		}
		next() // it is created
		next() // what was before
		s.http(t, post("/v3/kv/deleterange", `{"key":"%s"}`, key))
		next()
	}
	if !reflect.DeepEqual(all[0], all[1]) {
		t.Errorf("the watch gives %v\netcd's %v", all[1], all[0])
	}
}

// TestHTTPUsersAsEtcd is what Patroni does, with users: it asks for a token, sends it with each request, and asks for
// another when that is refused.
func TestHTTPUsersAsEtcd(t *testing.T) {
	etcd, aweigh := startEtcd(t), startAweigh(t, 1)
	key, other := b64("/service/x/leader"), b64("/other")
	tokens := map[*system]string{}
	do := func(q asked) {
		t.Helper()
		var all [2]answered
		for i, s := range []*system{etcd, aweigh} {
			own := q
			if own.header["Authorization"] == "TOKEN" {
				own.header = map[string]string{"Authorization": tokens[s]}
			}
			all[i] = s.http(t, own)
			all[i].header = nil
			if q.path == "/v3/auth/authenticate" && all[i].Code == 200 { // bare leaves no token
				resp, err := http.Post("http://"+s.addresses[0]+q.path, "application/json", strings.NewReader(q.body))
				if err != nil {
					t.Fatal(err)
				}
				var x struct{ Token string }
				if err := json.NewDecoder(resp.Body).Decode(&x); err != nil {
					t.Fatal(err)
				}
				_ = resp.Body.Close()
				tokens[s] = x.Token
			}
		}
		if !reflect.DeepEqual(all[0], all[1]) {
			t.Errorf("%s %.200s\nanswers %+v\netcd's  %+v", q.path, q.body, all[1], all[0])
		}
	}
	signed := func(path, format string, args ...any) asked {
		q := post(path, format, args...)
		q.header = map[string]string{"Authorization": "TOKEN"}
		return q
	}
	do(post("/v3/auth/user/add", `{"name":"root","password":"secret"}`))
	do(post("/v3/auth/role/add", `{"name":"patroni"}`))
	do(post("/v3/auth/role/grant", `{"name":"patroni","perm":{"permType":"READWRITE","key":"%s","range_end":"%s"}}`, b64("/service/"), b64("/service0")))
	do(post("/v3/auth/user/add", `{"name":"patroni","password":"pw"}`))
	do(post("/v3/auth/user/grant", `{"user":"patroni","role":"patroni"}`))
	do(post("/v3/auth/user/grant", `{"user":"root","role":"root"}`))
	do(post("/v3/auth/enable", `{}`))

	do(post("/v3/kv/range", `{"key":"%s"}`, key)) // without a token
	do(asked{method: "POST", path: "/v3/kv/range", body: fmt.Sprintf(`{"key":"%s"}`, key), header: map[string]string{"Authorization": "stale"}})
	do(post("/v3/auth/authenticate", `{"name":"patroni","password":"wrong"}`))
	do(post("/v3/auth/authenticate", `{"name":"patroni","password":"pw"}`))
	do(signed("/v3/lease/grant", `{"TTL":30,"ID":"99"}`))
	do(signed("/v3/kv/txn", `{"compare":[{"target":"CREATE","result":"EQUAL","create_revision":"0","key":"%s"}],"success":[{"request_put":{"key":"%s","value":"%s","lease":"99"}}]}`, key, key, b64("node1")))
	do(signed("/v3/lease/keepalive", `{"ID":"99"}`))
	do(signed("/v3/kv/range", `{"key":"%s","range_end":"%s"}`, b64("/service/"), b64("/service0")))
	do(signed("/v3/kv/range", `{"key":"%s"}`, other))
	do(signed("/v3/kv/put", `{"key":"%s"}`, other))
	do(signed("/v3/auth/user/list", `{}`))
	do(signed("/v3/cluster/member/list", `{}`))
	do(signed("/v3/lease/revoke", `{"ID":"99"}`))
	do(asked{method: "GET", path: "/health"}) // probes have no token
	do(asked{method: "GET", path: "/readyz"})

	// A user that is deleted, or gets another password, while its client goes on.
	do(post("/v3/auth/authenticate", `{"name":"root","password":"secret"}`))
	root := map[*system]string{etcd: tokens[etcd], aweigh: tokens[aweigh]}
	do(post("/v3/auth/authenticate", `{"name":"patroni","password":"pw"}`))
	patroni := map[*system]string{etcd: tokens[etcd], aweigh: tokens[aweigh]}
	as := func(who map[*system]string, q asked) {
		t.Helper()
		tokens = who
		do(q)
	}
	as(root, signed("/v3/auth/user/changepw", `{"name":"patroni","password":"pw2"}`))
	as(patroni, signed("/v3/kv/range", `{"key":"%s"}`, key))
	as(patroni, signed("/v3/kv/put", `{"key":"%s"}`, key))
	do(post("/v3/auth/authenticate", `{"name":"patroni","password":"pw2"}`))
	patroni = map[*system]string{etcd: tokens[etcd], aweigh: tokens[aweigh]}
	as(root, signed("/v3/auth/user/revoke", `{"name":"patroni","role":"patroni"}`))
	as(patroni, signed("/v3/kv/range", `{"key":"%s"}`, key))
	as(root, signed("/v3/auth/user/delete", `{"name":"patroni"}`))
	as(patroni, signed("/v3/kv/range", `{"key":"%s"}`, key))
	as(patroni, signed("/v3/kv/put", `{"key":"%s"}`, key))
	as(patroni, signed("/v3/kv/txn", `{"success":[{"request_put":{"key":"%s"}}]}`, key))
	as(patroni, signed("/v3/lease/leases", `{}`))
	as(patroni, signed("/v3/cluster/member/list", `{}`))
	as(patroni, signed("/v3/auth/user/get", `{"name":"patroni"}`))
	do(post("/v3/auth/authenticate", `{"name":"patroni","password":"pw2"}`))
}
