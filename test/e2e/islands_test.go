package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aweigh/aweigh/internal/testshort"
)

type islandJSON struct {
	ID      string
	Members []string
	Open    bool
	Here    bool
	Left    int64 `json:"entries_left"`
	Stands  int64
	Aside   int64
	Records bool `json:"recorded"`
}

// islands lists the islands that a node knows.
func (n *network) islands(p *process) (all []islandJSON, err error) {
	var r struct{ Islands []islandJSON }
	out, errs, code := n.command("island", "ls", "--api", p.api, "-o", "json")
	if code != 0 {
		return nil, errors.New(errs)
	}
	return r.Islands, json.Unmarshal([]byte(out), &r)
}

// TestIslandsDecide: a network is cut in two halves, and each decides provisionally, on keys of its own and on one that
// both change. Half of the nodes are killed, before the halves meet and as the scope takes what they decided. In the
// end, what does not conflict stands, once, on all nodes, and a motion is open about the rest.
func TestIslandsDecide(t *testing.T) {
	testshort.SkipUnlessLong(t)
	t.Parallel()
	n := newNetwork(t, 4, true)
	n.start()
	policy := filepath.Join(n.dir, "policy.yaml")
	shown := n.must("policy", "show", "--api", n.nodes[0].api)
	with := strings.Replace(shown, "partitions: []", "partitions:\n  - prefix=/ship/ share=2/5 after=2s gather=3s window=1h", 1)
	if err := os.WriteFile(policy, []byte(with), 0o600); err != nil || with == shown {
		t.Fatalf("%v, or no partitions in\n%s", err, shown)
	}
	n.decreed("prefix=/ship/", policy)
	n.must("put", "/ship/log", "before", "--api", n.nodes[0].api)
	n.must("put", "/ship/quiet", "as it was", "--api", n.nodes[0].api)
	n.agreed(20 * time.Second)
	if out, errs, code := n.command("put", "/ship/log", "early", "--provisional", "--api", n.nodes[0].api); code != 4 || !strings.Contains(errs, "has a quorum") {
		t.Fatalf("with a quorum: exit code %d\n%s%s", code, out, errs)
	}

	n.cutAlong(cut)
	decide := func(p *process, key, value string) {
		t.Helper()
		until(t, 60*time.Second, p.name+" decides provisionally on "+key, func(context.Context) error {
			out, errs, code := n.command("put", key, value, "--provisional", "--timeout", "5s", "--api", p.api)
			if code != 13 {
				return fmt.Errorf("exit code %d: %s%s", code, out, errs)
			}
			if !strings.Contains(out, "provisional") || !strings.Contains(errs, "weight") {
				t.Errorf("it says\n%s%s", out, errs)
			}
			return nil
		})
	}
	for side := range 2 {
		a, b := n.nodes[2*side], n.nodes[2*side+1]
		decide(a, "/ship/log", fmt.Sprint("side ", side))
		decide(b, fmt.Sprint("/ship/own", side), "mine")
		if out := n.must("get", "/ship/log", "--provisional", "--api", b.api, "-o", "value"); strings.TrimSpace(out) != fmt.Sprint("side ", side) {
			t.Errorf("the island of side %d reads %q", side, out)
		}
		if out := n.must("get", "/ship/log", "--serializable", "--api", b.api, "-o", "value"); strings.TrimSpace(out) != "before" {
			t.Errorf("side %d reads %q of the scope", side, out)
		}
	}
	for key, named := range map[string]bool{"/ship/late": true, "/land/late": false} { // order-free
		_, errs, code := n.command("put", key, "1", "--timeout", "2s", "--api", n.nodes[0].api, "--valid-for", "3s")
		if code != 5 || strings.Contains(errs, "can decide it provisionally (--provisional)") != named {
			t.Errorf("a put of %s without a quorum: exit code %d\n%s", key, code, errs)
		}
	}
	if out := n.must("status", "--api", n.nodes[0].api); !strings.Contains(out, " decides provisionally, on requests with --provisional") {
		t.Errorf("the status does not name the island:\n%s", out)
	}
	if out, errs, code := n.command("put", "/land/x", "1", "--provisional", "--api", n.nodes[0].api); code != 4 {
		t.Errorf("outside the partition: exit code %d\n%s%s", code, out, errs)
	}
	n.nodes[1].signal(sigKill)
	n.nodes[2].signal(sigKill)
	n.nodes[1].start()
	n.nodes[2].start()
	until(t, 30*time.Second, "an island goes on after a kill", func(context.Context) error {
		out, errs, code := n.command("get", "/ship/own0", "--provisional", "--api", n.nodes[1].api, "-o", "value")
		if code != 0 || strings.TrimSpace(out) != "mine" {
			return fmt.Errorf("exit code %d: %s%s", code, out, errs)
		}
		return nil
	})
	decide(n.nodes[1], "/ship/later", "after the kill")

	n.cutAlong(open)
	until(t, 60*time.Second, "an island is on record", func(context.Context) error {
		all, err := n.islands(n.nodes[0])
		if err != nil {
			return err
		}
		for _, is := range all {
			if is.Records {
				return nil
			}
		}
		return errors.New("none")
	})
	n.nodes[3].signal(sigKill)
	n.nodes[0].signal(sigKill) // both members of a half that begin to bring back what they decided
	n.nodes[3].start()
	n.nodes[0].start()
	for _, p := range n.nodes {
		until(t, 90*time.Second, p.name+" has all of both islands", func(context.Context) error {
			all, err := n.islands(p)
			if err != nil {
				return err
			}
			stands, aside, left := int64(0), int64(0), int64(0)
			for _, is := range all {
				if !is.Records {
					return fmt.Errorf("%+v", all)
				}
				stands, aside, left = stands+is.Stands, aside+is.Aside, left+is.Left
			}
			if len(all) != 2 || stands != 4 || aside != 1 || left != 0 {
				return fmt.Errorf("%+v", all)
			}
			return nil
		})
		for key, want := range map[string]string{"/ship/own0": "mine", "/ship/own1": "mine", "/ship/later": "after the kill", "/ship/quiet": "as it was"} { // order-free
			if got := strings.TrimSpace(n.must("get", key, "--api", p.api, "-o", "value")); got != want {
				t.Errorf("%s reads %q of %s, want %q", p.name, got, key, want)
			}
		}
	}
	var log struct{ Kvs []struct{ Version int64 } }
	n.tells(&log, "get", "/ship/log", "--api", n.nodes[2].api)
	if len(log.Kvs) != 1 || log.Kvs[0].Version != 2 {
		t.Errorf("the key that both changed: %+v", log)
	}
	if out := n.must("history", "/ship/log", "--api", n.nodes[2].api); !strings.Contains(out, "island") {
		t.Errorf("the history does not tell of the island:\n%s", out)
	}
	n.must("why", "/ship/log", "--api", n.nodes[2].api)
	until(t, 60*time.Second, "a motion is open about what was set aside", func(context.Context) error {
		out := n.must("motion", "ls", "--api", n.nodes[0].api)
		if strings.Count(out, "/ship/log") == 0 && strings.Count(out, "open") == 0 {
			return errors.New(out)
		}
		return nil
	})
	for _, p := range n.nodes {
		until(t, 20*time.Second, p.name+" names the motion", func(context.Context) error {
			all, err := n.islands(p)
			if err != nil {
				return err
			}
			for _, is := range all {
				var r struct {
					Island struct {
						SetAside []struct{ Motion string } `json:"set_aside"`
					}
				}
				n.tells(&r, "island", "show", is.ID, "--api", p.api)
				for _, a := range r.Island.SetAside {
					if a.Motion == "" {
						return fmt.Errorf("%+v", r)
					}
					n.must("motion", "show", a.Motion, "--api", p.api)
				}
			}
			return nil
		})
	}
	n.agreed(20 * time.Second)
}
