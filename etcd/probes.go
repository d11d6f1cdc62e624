package etcd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/aweigh/aweigh/etcd/etcdpb"
	"github.com/aweigh/aweigh/node"
	"github.com/aweigh/aweigh/node/referral"
)

// probeTime bounds a probe's read, as etcd bounds its requests.
const probeTime = 7 * time.Second

// probed is the answer of /health.
type probed struct {
	Health string `json:"health"` // "true" or "false"
	Reason string `json:"reason"`
}

// probes are etcd's: paths, queries, texts and codes. Users need not identify themselves, as in
// etcd.
func (s *service) probes(metrics http.Handler) *http.ServeMux {
	mux := http.NewServeMux()
	mux.Handle("/health", s.probe(func(w http.ResponseWriter, r *http.Request) {
		h := s.health(r.Context(), r.URL.Query()["exclude"], r.URL.Query().Get("serializable") == "true")
		text, _ := json.Marshal(h)
		if h.Health != "true" {
			http.Error(w, string(text), http.StatusServiceUnavailable)
			return
		}
		_, _ = w.Write(text) // the client went
	}))
	mux.HandleFunc("/version", func(w http.ResponseWriter, r *http.Request) {
		if !allowed(w, r) {
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(struct {
			Server  string `json:"etcdserver"`
			Cluster string `json:"etcdcluster"`
			Storage string `json:"storage"`
		}{apiVersion, clusterVersion + ".0", storageVersion})
	})
	if metrics != nil {
		mux.Handle("/metrics", s.probe(metrics.ServeHTTP))
	}
	s.checks(mux, "/livez", check{"serializable_read", s.reads(false)})
	s.checks(mux, "/readyz", check{"data_corruption", func(context.Context) error { return nil }}, // a node that finds its store corrupt stops
		check{"serializable_read", s.reads(false)}, check{"linearizable_read", s.reads(true)},
		check{"non_learner", s.votes})
	return mux
}

// allowed refuses methods other than GET, as etcd does.
func allowed(w http.ResponseWriter, r *http.Request) bool {
	if r.Method == http.MethodGet {
		return true
	}
	w.Header().Set("Allow", http.MethodGet)
	http.Error(w, "Method Not Allowed", http.StatusMethodNotAllowed)
	return false
}

// probe bounds the probes that are answered at once, among all calls.
func (s *service) probe(h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !allowed(w, r) {
			return
		}
		defer s.calls.Add(-1)
		if s.calls.Add(1) > maxCalls {
			http.Error(w, "aweigh: too many requests", http.StatusServiceUnavailable)
			return
		}
		h(w, r)
	}
}

// health is what is wrong, if something is, of the alarms that are not excluded.
func (s *service) health(ctx context.Context, excluded []string, serializable bool) probed {
	bad := func(why string) probed { return probed{"false", why} }
	for _, a := range s.alarms(0) {
		if name := a.Alarm.String(); !slices.Contains(excluded, name) {
			return bad("ALARM " + name)
		}
	}
	if !serializable && !s.hasLeader() {
		return bad("RAFT NO LEADER")
	}
	if err := s.reads(!serializable)(ctx); err != nil {
		return bad("RANGE ERROR:" + err.Error())
	}
	return probed{Health: "true"}
}

// reads is a check that reads the root scope's state.
func (s *service) reads(linearizable bool) func(context.Context) error {
	return func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, probeTime)
		defer cancel()
		return toStatus(ctx, s.look(ctx, referral.Keys(), linearizable, func(*node.View) error { return nil }))
	}
}

// votes is a check that this node is an anchor.
func (s *service) votes(context.Context) error {
	if s.learner() {
		return errors.New("node is learner")
	}
	return nil
}

// check is one of those of a path.
type check struct {
	name string
	run  func(context.Context) error
}

// checks serves a path that runs all checks but those in the query "exclude", and one below it for each.
func (s *service) checks(mux *http.ServeMux, path string, all ...check) {
	mux.Handle(path, s.probe(func(w http.ResponseWriter, r *http.Request) {
		excluded := r.URL.Query()["exclude"]
		checked(w, r, slices.DeleteFunc(slices.Clone(all), func(c check) bool { return slices.Contains(excluded, c.name) }))
	}))
	for _, c := range all {
		mux.Handle(path+"/"+c.name, s.probe(func(w http.ResponseWriter, r *http.Request) { checked(w, r, []check{c}) }))
	}
}

func checked(w http.ResponseWriter, r *http.Request, all []check) {
	var text strings.Builder
	failed := false
	for _, c := range all {
		if err := c.run(r.Context()); err != nil {
			failed = true
			fmt.Fprintf(&text, "[-]%s failed: %v\n", c.name, err)
		} else {
			fmt.Fprintf(&text, "[+]%s ok\n", c.name)
		}
	}
	if failed {
		http.Error(w, text.String(), http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if !r.URL.Query().Has("verbose") {
		text.Reset()
	}
	text.WriteString("ok\n")
	_, _ = w.Write([]byte(text.String())) // the client went
}

// alarms are those of a member, 0 for all that say whether the node is well.
func (s *service) alarms(of uint64) (all []*etcdpb.AlarmMember) {
	for _, i := range s.node.Scopes() {
		if !i.Held || !i.Head.Full(&i.Epoch.Policy) {
			continue
		}
		member := s.member
		if i.Genesis.Descent != nil {
			member = short(i.Head.Scope)
		}
		// A request for all of them asks whether the member is well, as etcdctl's
		// "endpoint health" does: a scope below that is full stops no other.
		if of == member || of == 0 && i.Genesis.Descent == nil {
			all = append(all, &etcdpb.AlarmMember{MemberID: member, Alarm: etcdpb.AlarmType_NOSPACE})
		}
	}
	return all
}
