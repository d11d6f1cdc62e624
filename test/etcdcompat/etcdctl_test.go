package etcdcompat

import (
	"bufio"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// TestEtcdctlLeasesLocksAndElects runs etcd's command line against a devnet.
func TestEtcdctlLeasesLocksAndElects(t *testing.T) {
	ctl := os.Getenv("AWEIGH_ETCDCTL")
	if ctl == "" {
		t.Skip(`AWEIGH_ETCDCTL does not name a binary of etcdctl 3.6; "scripts/etcd etcdctl" builds one and prints its path`)
	}
	s := startAweigh(t, 4)
	command := func(node int, args ...string) *exec.Cmd {
		return exec.CommandContext(t.Context(), ctl, append([]string{"--endpoints", s.addresses[node]}, args...)...)
	}
	run := func(node int, want string, args ...string) string {
		t.Helper()
		out, err := command(node, args...).CombinedOutput()
		if err != nil || !strings.Contains(string(out), want) {
			t.Fatalf("etcdctl %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	lease := strings.Fields(run(0, "granted with TTL(3s)", "lease", "grant", "3"))[1]
	run(1, "OK", "put", "--lease", lease, "leased", "value")
	run(2, "attached keys([leased])", "lease", "timetolive", "--keys", lease)
	run(3, lease, "lease", "list")
	run(0, "keepalived with TTL(3)", "lease", "keep-alive", "--once", lease)
	run(1, "in the lock", "lock", "name", "echo", "in the lock")

	campaign := command(0, "elect", "name", "somebody")
	printed, err := campaign.StdoutPipe()
	if err == nil {
		err = campaign.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	until(t, "somebody leads", 20*time.Second, func() bool {
		out, err := command(1, "get", "--prefix", "name/", "--print-value-only").Output()
		return err == nil && strings.TrimSpace(string(out)) == "somebody"
	})
	// etcdctl reads its key before it waits to resign; if it is interrupted there, it ends without resigning.
	if line, err := bufio.NewReader(printed).ReadString('\n'); err != nil || !strings.HasPrefix(line, "name/") {
		t.Fatalf("the leader prints %q, %v", line, err)
	}
	if err := campaign.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = campaign.Wait() // it ends with an error when it is interrupted
	until(t, "nobody leads", 20*time.Second, func() bool {
		out, err := command(1, "get", "--prefix", "name/", "--keys-only").Output()
		return err == nil && len(strings.TrimSpace(string(out))) == 0
	})
	until(t, "the lease expires", 20*time.Second, func() bool {
		out, err := command(2, "lease", "timetolive", lease).Output()
		return err == nil && strings.Contains(string(out), "already expired")
	})
	if out := run(3, "", "get", "leased"); out != "" {
		t.Errorf("its key is there: %s", out)
	}
	other := strings.Fields(run(0, "granted", "lease", "grant", "100"))[1]
	run(1, "revoked", "lease", "revoke", other)
}
