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

// cutAlong cuts or opens all links between the first half of the nodes and the second.
func (n *network) cutAlong(s linkState) {
	half := len(n.nodes) / 2
	for i := range half {
		for j := half; j < len(n.nodes); j++ {
			n.links[i][j].set(s)
			n.links[j][i].set(s)
		}
	}
}

// waits finds the one motion that waits at a node for a block.
func (n *network) waits(p *process) (id string) {
	n.t.Helper()
	until(n.t, 20*time.Second, p.name+" knows what waits", func(context.Context) error {
		var r struct {
			Motions []struct {
				ID, Fate string
				Until    int64 `json:"valid_until_ns"`
			}
		}
		out, errs, code := n.command("motion", "ls", "--waiting", "--api", p.api, "-o", "json")
		if code != 0 { // it starts
			return errors.New(errs)
		}
		if err := json.Unmarshal([]byte(out), &r); err != nil {
			return err
		}
		if len(r.Motions) != 1 || r.Motions[0].Fate != "waiting" || r.Motions[0].Until == 0 {
			return fmt.Errorf("%+v", r.Motions)
		}
		id = r.Motions[0].ID
		return nil
	})
	return id
}

// TestIslandVotes: a network is cut in two halves, of which neither has a quorum. Both propose, export, and vote, also
// on what the other half proposed, with keys that no node knows; half of the nodes die. When the halves meet, one block
// opens each motion and carries it, once.
func TestIslandVotes(t *testing.T) {
	testshort.SkipUnlessLong(t)
	t.Parallel()
	n := newNetwork(t, 4, true)
	n.start()
	pass, key := filepath.Join(n.dir, "pass"), filepath.Join(n.dir, "alice.key")
	if err := os.WriteFile(pass, []byte("correct horse\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	n.must("voter", "new", key, "--passphrase-file", pass)
	var shown struct{ Key string }
	n.tells(&shown, "voter", "show", key, "-o", "json")
	n.approvals("prefix=/secrets/ threshold=3/4 min-anchors=4 window=1h approver=alice," + shown.Key + ",required")
	policy := filepath.Join(n.dir, "policy.yaml")
	shownPolicy := n.must("policy", "show", "--api", n.nodes[0].api)
	patient := strings.Replace(shownPolicy, "pending: 0s", "pending: 720h", 1)
	if err := os.WriteFile(policy, []byte(patient), 0o600); err != nil || patient == shownPolicy {
		t.Fatalf("%v, or no limits.pending in\n%s", err, shownPolicy)
	}
	n.decreed("pending: 720h0m0s", policy)
	var status struct{ Header struct{ Network string } }
	n.tells(&status, "status", "--api", n.nodes[0].api, "-o", "json")
	for _, p := range n.nodes { // each has asked the quorum once for its users
		n.must("get", "/", "--prefix", "--api", p.api)
	}

	n.cutAlong(cut)
	ids, files := make([]string, 2), make([]string, 2)
	for side := range 2 {
		near, beside := n.nodes[2*side], n.nodes[2*side+1]
		key := fmt.Sprint("/secrets/", side)
		out, errs, code := n.command("put", key, "s3cret", "-m", "from an island", "--pending", "48h", "--timeout", "6s", "--api", near.api)
		if code != 5 {
			t.Fatalf("exit code %d\n%s%s", code, out, errs)
		}
		_, free, code := n.command("put", "/open", "1", "--pending", "48h", "--timeout", "6s", "--api", near.api)
		if code != 5 || !strings.Contains(free, "it would open no motion") || strings.Contains(errs, "it would open no motion") {
			t.Errorf("exit code %d; a put that takes no approval says\n%s\none that does\n%s", code, free, errs)
		}
		if out, errs, code := n.command("get", key, "--serializable", "--api", near.api); code != 3 {
			t.Errorf("a read by the node alone: exit code %d, not that there is no such key\n%s%s", code, out, errs)
		}
		ids[side], files[side] = n.waits(beside), filepath.Join(n.dir, fmt.Sprint(side, ".motion"))
		if n.waits(near) != ids[side] || !strings.Contains(errs, "aweigh motion show "+ids[side][:8]) {
			t.Errorf("%s waits at %s; the put says\n%s", n.waits(near), near.name, errs)
		}
		if shown := n.must("motion", "show", ids[side], "--api", near.api); !strings.Contains(shown, "not opened yet") || !strings.Contains(shown, "on the node's disk") {
			t.Errorf("motion show:\n%s", shown)
		}
		n.must("motion", "export", ids[side][:8], "--api", beside.api, "--write", files[side])
		shown := n.must("ballot", "inspect", files[side], "--network", status.Header.Network)
		if !strings.Contains(shown, "not yet, states the node") || !strings.Contains(shown, "s3cret") || !strings.Contains(shown, "alice") {
			t.Errorf("a voter sees\n%s", shown)
		}
	}
	for side := range 2 {
		for i, p := range n.nodes {
			if i/2 == side { // the motion waits here
				n.must("ballot", "approve", ids[side], "--api", p.api)
				continue
			}
			ballot := filepath.Join(n.dir, fmt.Sprintf("%d-%d.ballot", side, i))
			n.must("ballot", "sign", files[side], "--network", status.Header.Network, "--choice", "approve", "--key", filepath.Join(p.dir, "anchor.key"), "--write", ballot)
			n.must("ballot", "import", ballot, "--api", p.api)
		}
		ballot := filepath.Join(n.dir, fmt.Sprintf("%d-alice.ballot", side))
		n.must("ballot", "sign", files[side], "--network", status.Header.Network, "--choice", "approve", "--key", key, "--passphrase-file", pass, "--write", ballot)
		n.must("ballot", "import", ballot, "--api", n.nodes[3*side].api)
	}
	n.nodes[1].signal(sigKill)
	n.nodes[2].signal(sigKill) // which proposed, and has it on its disk
	n.nodes[1].start()
	n.nodes[2].start()
	if n.waits(n.nodes[2]) != ids[1] {
		t.Errorf("after a restart, another motion waits than %s", ids[1])
	}

	n.cutAlong(open)
	for side, id := range ids {
		for _, p := range n.nodes {
			n.motion(p, id, time.Minute, "the motion is carried", isIt("carried"))
		}
		n.motion(n.nodes[0], id, time.Second, "its ballots came before it opened", func(m *motionJSON) error {
			for _, v := range m.Voters {
				if len(v.Ballots) != 1 || v.Ballots[0].Late {
					return fmt.Errorf("%s: %+v", v.Name, v.Ballots)
				}
			}
			return nil
		})
		var got struct {
			Kvs []struct{ Version int64 }
		}
		n.must("why", fmt.Sprint("/secrets/", side), "--api", n.nodes[3].api)
		n.tells(&got, "get", fmt.Sprint("/secrets/", side), "--api", n.nodes[3].api)
		if len(got.Kvs) != 1 || got.Kvs[0].Version != 1 {
			t.Errorf("the key of side %d: %+v", side, got)
		}
	}
	n.agreed(20 * time.Second)
	if out := n.must("motion", "ls", "--waiting", "--api", n.nodes[0].api); !strings.Contains(out, "no motions") {
		t.Errorf("in the end, these wait:\n%s", out)
	}
}
