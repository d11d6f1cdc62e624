package e2e

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/client"
	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/votes"
)

// approvals lets an approval become part of the policy, and waits until it is.
func (n *network) approvals(text string) {
	n.t.Helper()
	n.decreed(strings.Fields(text)[0], "--approve", text)
}

// decreed changes the policy, and waits until it has a word that it did not have.
func (n *network) decreed(word string, args ...string) {
	n.t.Helper()
	n.must(append([]string{"policy", "set", "--api", n.nodes[0].api}, args...)...)
	id := n.motions(n.nodes[0])[0].ID
	for _, p := range n.nodes[1 : 2*len(n.nodes)/3+1] {
		n.must("ballot", "approve", id, "--api", p.api)
	}
	until(n.t, 20*time.Second, "the policy is in force", func(context.Context) error {
		for _, p := range n.nodes {
			if out, _, code := n.command("policy", "show", "--api", p.api); code != 0 || !strings.Contains(out, word) {
				return fmt.Errorf("%s does not have it", p.name)
			}
		}
		return nil
	})
}

type motionJSON struct {
	ID     string `json:"id"`
	Fate   string `json:"fate"`
	Voters []struct {
		Name    string `json:"name"`
		Ballots []struct {
			Choice string `json:"choice"`
			Height uint64 `json:"height"`
			Late   bool   `json:"late"`
			Early  bool   `json:"early"`
		} `json:"ballots"`
	} `json:"voters"`
}

// motions are those that a node knows, the open ones first.
func (n *network) motions(p *process) []motionJSON {
	n.t.Helper()
	var r struct{ Motions []motionJSON }
	n.tells(&r, "motion", "ls", "--all", "--api", p.api, "-o", "json")
	return r.Motions
}

// motion waits until a motion stands as wanted at a node.
func (n *network) motion(p *process, id string, limit time.Duration, what string, pleases func(*motionJSON) error) {
	n.t.Helper()
	until(n.t, limit, what, func(context.Context) error {
		for _, m := range n.motions(p) {
			if m.ID == id {
				return pleases(&m)
			}
		}
		return errors.New("it knows no such motion")
	})
}

func isIt(want string) func(*motionJSON) error {
	return func(m *motionJSON) error {
		if m.Fate != want {
			return fmt.Errorf("it is %s", m.Fate)
		}
		return nil
	}
}

// TestMotionsLeaveWithoutAQuorum: the quorum is gone as soon as a motion is open, so that no block comes after it. Its
// file is written all the same, verifies offline, and what is signed from it counts once the others are back.
func TestMotionsLeaveWithoutAQuorum(t *testing.T) {
	testshort.SkipUnlessLong(t)
	t.Parallel()
	n := newNetwork(t, 4, false)
	n.start()
	pass, key := filepath.Join(n.dir, "pass"), filepath.Join(n.dir, "alice.key")
	if err := os.WriteFile(pass, []byte("correct horse\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	n.must("voter", "new", key, "--passphrase-file", pass)
	var shown struct{ Key string }
	n.tells(&shown, "voter", "show", key, "-o", "json")
	n.approvals("prefix=/secrets/ threshold=3/4 window=1h approver=alice," + shown.Key + ",required")
	var status struct{ Header struct{ Network string } }
	n.tells(&status, "status", "--api", n.nodes[0].api, "-o", "json")

	ballot := filepath.Join(n.dir, "alice.ballot")
	var id, file string
	var seen struct{ Bare bool }
	for try := 0; !seen.Bare && try < 5; try++ { // a block may follow before the quorum is gone
		if try > 0 {
			n.nodes[2].start()
			n.nodes[3].start()
			n.agreed(20 * time.Second)
			n.must("motion", "withdraw", id, "--api", n.nodes[0].api)
		}
		if out, errs, code := n.command("put", "/secrets/db", "s3cret", "--api", n.nodes[0].api); code != 10 {
			t.Fatalf("exit code %d\n%s%s", code, out, errs)
		}
		n.nodes[2].signal(sigKill)
		n.nodes[3].signal(sigKill)
		id, file = n.motions(n.nodes[0])[0].ID, filepath.Join(n.dir, fmt.Sprintf("m%d.motion", try))
		n.must("motion", "export", id, "--api", n.nodes[0].api, "--write", file)
		n.tells(&seen, "ballot", "inspect", file, "--network", status.Header.Network, "-o", "json")
	}
	out := n.must("ballot", "inspect", file, "--network", status.Header.Network)
	if !seen.Bare || !strings.Contains(out, "s3cret") || !strings.Contains(out, "as no later block was final") {
		t.Errorf("bare: %v; a voter sees\n%s", seen.Bare, out)
	}
	if _, errs, code := n.command("ballot", "sign", file, "--network", status.Header.Network, "--choice", "approve", "--key", key, "--passphrase-file", pass,
		"--write", ballot); code != 0 || !strings.Contains(errs, "no block after the one that ordered the motion") {
		t.Fatalf("exit code %d\n%s", code, errs)
	}
	n.must("ballot", "import", ballot, "--api", n.nodes[0].api)
	n.start()
	for _, p := range n.nodes[:3] {
		n.must("ballot", "approve", id, "--api", p.api)
	}
	n.motion(n.nodes[1], id, 30*time.Second, "the motion is carried", isIt("carried"))
	n.must("motion", "export", id, "--api", n.nodes[0].api, "--write", file+"2")
	if n.tells(&seen, "ballot", "inspect", file+"2", "--network", status.Header.Network, "-o", "json"); seen.Bare {
		t.Error("it is bare with later blocks")
	}
}

// TestMotionsCrossByDirectory: a motion opens on one side of a cut, is signed by
// keys that never touch a network, and the ballots come back through a directory
// from a node that nobody else reaches.
func TestMotionsCrossByDirectory(t *testing.T) {
	testshort.SkipUnlessLong(t)
	t.Parallel()
	n := newNetwork(t, 4, true)
	n.start()
	pass, stick := filepath.Join(n.dir, "pass"), filepath.Join(n.dir, "stick")
	if err := os.WriteFile(pass, []byte("correct horse\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	rule := "prefix=/secrets/ threshold=3/4 min-anchors=4 window=1h"
	for name, scheme := range map[string]string{"alice": "ed25519", "bob": "ml-dsa-65"} { // order-free: each is its own
		key := filepath.Join(n.dir, name+".key")
		n.must("voter", "new", key, "--scheme", scheme, "--passphrase-file", pass)
		var shown struct{ Key string }
		n.tells(&shown, "voter", "show", key, "--passphrase-file", pass, "-o", "json")
		rule += fmt.Sprintf(" approver=%s,%s,required", name, shown.Key)
	}
	n.approvals(rule)
	var status struct {
		Header struct{ Network string }
	}
	n.tells(&status, "status", "--api", n.nodes[0].api, "-o", "json")

	out, errs, code := n.command("put", "/secrets/db", "s3cret", "-m", "rotation", "--api", n.nodes[0].api)
	if code != 10 || !strings.Contains(out, "PENDING") {
		t.Fatalf("exit code %d\n%s%s", code, out, errs)
	}
	id := n.motions(n.nodes[0])[0].ID
	file := filepath.Join(n.dir, "m.motion")
	n.must("motion", "export", id, "--api", n.nodes[1].api, "--write", file)
	if out := n.must("ballot", "inspect", file, "--network", status.Header.Network); !strings.Contains(out, "s3cret") || !strings.Contains(out, "rotation") {
		t.Fatalf("a voter sees\n%s", out)
	}

	if err := os.Mkdir(stick, 0o755); err != nil {
		t.Fatal(err)
	}
	n.isolate(3, cut)
	for _, p := range n.nodes {
		n.must("ballot", "approve", id, "--api", p.api) // the last one is heard by nobody
	}
	for _, name := range []string{"alice", "bob"} {
		ballot := filepath.Join(n.dir, name+".ballot")
		n.must("ballot", "sign", file, "--network", status.Header.Network, "--choice", "approve", "--comment", "seen by "+name,
			"--key", filepath.Join(n.dir, name+".key"), "--passphrase-file", pass, "--write", ballot)
		n.must("ballot", "import", ballot, "--api", n.nodes[3].api)
	}
	n.motion(n.nodes[0], id, 20*time.Second, "three anchors are heard", func(m *motionJSON) error {
		said := 0
		for _, v := range m.Voters {
			for _, b := range v.Ballots {
				if b.Height > 0 {
					said++
				}
			}
		}
		if m.Fate != "open" || said != 3 {
			return fmt.Errorf("it is %s with %d ballots", m.Fate, said)
		}
		return nil
	})
	dry := n.must("ballot", "reconcile", n.nodes[3].api, "--dry-run", "--api", n.nodes[0].api)
	if want := "here 3 ballots, there 3: 3 would go there, 3 would come here"; !strings.Contains(dry, want) {
		t.Errorf("%q, want %q", dry, want)
	}
	if out := n.must("ballot", "sync", "--via", stick, "--api", n.nodes[3].api); !strings.Contains(out, " written") {
		t.Fatal(out)
	}
	n.nodes[3].signal(sigKill) // what it acknowledged is on the stick, and on its disk
	n.must("ballot", "sync", "--via", stick, "--api", n.nodes[0].api)
	n.motion(n.nodes[1], id, 20*time.Second, "the motion is carried", isIt("carried"))
	if out := n.must("get", "/secrets/db", "--api", n.nodes[2].api, "-o", "value"); out != "s3cret\n" {
		t.Errorf("the value is %q", out)
	}

	n.isolate(3, open)
	n.start()
	n.motion(n.nodes[3], id, 30*time.Second, "it is carried where it was cut off, too", isIt("carried"))
	proof := filepath.Join(n.dir, "proof")
	n.must("why", "/secrets/db", "--api", n.nodes[0].api, "--proof", proof)
	if out := n.must("verify", proof, "--network", status.Header.Network); !strings.Contains(out, "alice") || !strings.Contains(out, "bob") {
		t.Errorf("the proof tells of\n%s", out)
	}
	if out, errs, code := n.command("ballot", "import", filepath.Join(n.dir, "alice.ballot"), "--api", n.nodes[2].api); code != 0 || !strings.Contains(out, "1 known already") {
		t.Errorf("again: exit code %d\n%s%s", code, out, errs)
	}
	n.agreed(20 * time.Second)
}

// TestPendingOutlivesAllButDisks (P35): without a quorum a write and a ballot on it
// are pending, nobody is told otherwise, and both survive the death of their nodes;
// once there is a quorum, the first block carries them.
func TestPendingOutlivesAllButDisks(t *testing.T) {
	testshort.SkipUnlessLong(t)
	t.Parallel()
	n := newNetwork(t, 4, false)
	n.start()
	alice, err := votes.GenerateKey(votes.Ed25519, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	n.approvals(fmt.Sprintf("prefix=/secrets/ threshold=1/2 window=1h approver=alice,%s,weight=100%%", alice.Public()))
	c := n.dial(0)
	status, err := n.nodes[0].status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	// A node that has asked the quorum once knows that there are no users, and judges the callers of its port alone.
	if _, err := c.Put(within(t, 20*time.Second), putOf("/warm", "1")); err != nil {
		t.Fatal(err)
	}
	n.nodes[2].signal(sigKill)
	n.nodes[3].signal(sigKill)

	put := putOf("/secrets/x", "1")
	put.Once = &aweighv1.Once{ValidUntilNs: time.Now().Add(5 * time.Minute).UnixNano()}
	_, err = c.Put(within(t, 9*time.Second), put)
	var u *client.Undecided
	if !errors.As(err, &u) || !strings.Contains(err.Error(), "pending on this node's disk") {
		t.Fatalf("%v, want an undecided one that is pending", err)
	}
	vote := votes.MotionVote{Motion: votes.MotionID(u.Mutation), Choice: votes.Approve}
	copy(vote.Network[:], status.Header.Network)
	copy(vote.Scope[:], status.Header.Scope)
	ballot, err := votes.SignMotionBallot(alice.Signer(), vote, "before it opened")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(n.dir, "early.ballot")
	if err := os.WriteFile(file, ballot.Encode(), 0o600); err != nil {
		t.Fatal(err)
	}
	if out := n.must("ballot", "import", file, "--api", n.nodes[1].api); !strings.Contains(out, "1 new") {
		t.Fatal(out)
	}
	n.nodes[0].signal(sigKill)
	n.nodes[1].signal(sigKill)

	n.start()
	id := hex.EncodeToString(u.Mutation)
	n.motion(n.nodes[3], id, 30*time.Second, "the motion is carried", isIt("carried"))
	if out := n.must("get", "/secrets/x", "--api", n.nodes[2].api, "-o", "value"); out != "1\n" {
		t.Errorf("the value is %q", out)
	}
	n.motion(n.nodes[3], id, time.Second, "the ballot counts", func(m *motionJSON) error {
		for _, v := range m.Voters {
			if v.Name == "alice" && len(v.Ballots) == 1 && !v.Ballots[0].Late {
				return nil
			}
		}
		return fmt.Errorf("%+v", m.Voters)
	})
	n.agreed(20 * time.Second)
}

// TestBoxesMeet: what one half of a network took while it was cut off reaches the
// other by itself; and where nodes do not reach each other, by way of whoever reaches
// both.
func TestBoxesMeet(t *testing.T) {
	testshort.SkipUnlessLong(t)
	t.Parallel()
	n := newNetwork(t, 4, true)
	n.start()
	n.approvals("prefix=/s/ threshold=1/1 window=1h")
	ids := make([]string, 2)
	for i := range ids {
		if out, errs, code := n.command("put", fmt.Sprint("/s/", i), "v", "--api", n.nodes[0].api); code != 10 {
			t.Fatalf("exit code %d\n%s%s", code, out, errs)
		}
		for _, m := range n.motions(n.nodes[0]) {
			if m.Fate == "open" && m.ID != ids[0] {
				ids[i] = m.ID
			}
		}
	}
	n.motion(n.nodes[3], ids[1], 20*time.Second, "all know of it", isIt("open"))
	n.isolate(3, cut)
	n.must("ballot", "approve", ids[0], "--api", n.nodes[3].api)
	for _, p := range n.nodes[:3] {
		n.must("ballot", "approve", ids[0], "--api", p.api)
	}
	n.must("ballot", "reconcile", n.nodes[3].api, "--api", n.nodes[0].api)
	n.motion(n.nodes[1], ids[0], 20*time.Second, "it is carried by way of this machine", isIt("carried"))

	n.must("ballot", "approve", ids[1], "--api", n.nodes[3].api)
	for _, p := range n.nodes[:3] {
		n.must("ballot", "approve", ids[1], "--api", p.api)
	}
	n.isolate(3, open)
	n.motion(n.nodes[1], ids[1], time.Minute, "it is carried when they meet", isIt("carried"))
	n.agreed(30 * time.Second)
}
