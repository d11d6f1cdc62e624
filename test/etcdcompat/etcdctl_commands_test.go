package etcdcompat

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// TestEtcdctlCommands runs etcd's command line through what it offers, against a
// devnet: what it prints is what it prints with etcd.
func TestEtcdctlCommands(t *testing.T) {
	ctl := os.Getenv("AWEIGH_ETCDCTL")
	if ctl == "" {
		t.Skip(`AWEIGH_ETCDCTL does not name a binary of etcdctl 3.6; "scripts/etcd etcdctl" builds one and prints its path`)
	}
	s := startAweigh(t, 4)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	command := func(input string, args ...string) (string, error) {
		cmd := exec.CommandContext(ctx, ctl, append([]string{"--endpoints", s.addresses[1]}, args...)...)
		cmd.Stdin = strings.NewReader(input)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	for _, c := range []struct {
		args  string // words, '_' for a space in one
		input string
		want  string // of the output; with '…' in front: somewhere in it
	}{
		{"put a 1", "", "OK\n"},
		{"put a 2 --prev-kv", "", "OK\na\n1\n"},
		{"put ab", "from input", "OK\n"},
		{"put a --ignore-value --lease=0", "", "OK\n"},
		{"put b x", "", "OK\n"},
		{"get a", "", "a\n2\n"},
		{"get a --print-value-only", "", "2\n"},
		{"get --prefix a --keys-only", "", "a\n\nab\n\n"},
		{"get --prefix a --count-only --write-out=fields", "", `…"Count" : 2`},
		{"get a c --order=DESCEND --sort-by=KEY", "", "b\nx\nab\nfrom input\na\n2\n"},
		{"get --from-key ab --limit=1", "", "ab\nfrom input\n"},
		{"get a --rev=3", "", "a\n1\n"},
		{"get a --hex", "", "\\x61\n\\x32\n"},
		{"get a --consistency=s", "", "a\n2\n"},
		{"get a -w json", "", `…"value":"Mg=="`},
		{"get nothing", "", ""},
		{"txn", "value(\"a\") = \"2\"\n\nput a 3\nget a\n\nput a 4\n\n", "SUCCESS\n\nOK\n\na\n3\n"},
		{"txn", "mod(\"a\") < \"2\"\n\nput a 5\n\ndel b --prev-kv\n\n", "…FAILURE\n\n1"},
		{"del ab --prev-kv", "", "1\nab\nfrom input\n"},
		{"del --prefix nothing", "", "0\n"},
		{"put c/1 x", "", "OK\n"},
		{"put c/2 x", "", "OK\n"},
		{"del --prefix c/", "", "2\n"},
		{"lease grant 100", "", "…granted with TTL(100s)"},
		{"lease list", "", "…found 1 leases"},
		{"compaction 5", "", "compacted revision 5\n"},
		{"endpoint health", "", "…is healthy"},
		{"endpoint status -w table", "", "…  3.6.16 "},
		{"endpoint hashkv", "", "…, "},
		{"member list", "", "…, node1, "},
		{"alarm list", "", ""},
		{"alarm disarm", "", ""},
		{"defrag", "", "…Finished defragmenting"},
		{"version", "", "…etcdctl version: 3."},
	} {
		args := strings.Fields(c.args)
		for i := range args {
			args[i] = strings.ReplaceAll(args[i], "_", " ")
		}
		got, err := command(c.input, args...)
		want, within := strings.CutPrefix(c.want, "…")
		if err != nil || !within && got != want || within && !strings.Contains(got, want) {
			t.Errorf("etcdctl %s: %v, %q, want %q", c.args, err, got, c.want)
		}
	}
	if help, err := command("", "get", "--help"); err == nil && strings.Contains(help, "--stream") { // from 3.7 on
		for _, args := range []string{"--prefix a", "--prefix a --keys-only", "--from-key a --limit=1", "a --consistency=s", "nothing"} {
			args := append([]string{"get"}, strings.Fields(args)...)
			want, err := command("", args...)
			got, bad := command("", append(args, "--stream")...)
			if err != nil || bad != nil || got != want {
				t.Errorf("etcdctl %s --stream: %q, %v, and without %q, %v", args, got, bad, want, err)
			}
		}
	}
	for args, want := range map[string]string{
		"get a --rev=2":                       "required revision has been compacted",
		"get a --rev=100000":                  "required revision is a future revision",
		"compaction 3":                        "required revision has been compacted",
		"lease revoke 4711":                   "requested lease not found",
		"put a x --lease=4711":                "requested lease not found",
		"put new --ignore-value":              "key not found",
		"auth enable":                         "root user does not exist",
		"member add x --peer-urls=http://x:1": "is not served: members are not added",
	} {
		if got, err := command("", strings.Fields(args)...); err == nil || !strings.Contains(got, want) {
			t.Errorf("etcdctl %s: %v, %q, want %q", args, err, got, want)
		}
	}

	watch := exec.CommandContext(ctx, ctl, "--endpoints", s.addresses[2], "watch", "w/", "--prefix", "--rev=6", "--prev-kv")
	out, err := watch.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := watch.Start(); err != nil {
		t.Fatal(err)
	}
	for _, args := range []string{"put w/1 x", "put w/1 y", "del w/1"} {
		if got, err := command("", strings.Fields(args)...); err != nil {
			t.Fatalf("%v: %s", err, got)
		}
	}
	want := "PUT\nw/1\nx\nPUT\nw/1\nx\nw/1\ny\nDELETE\nw/1\ny\nw/1\n\n"
	got := make([]byte, 0, len(want))
	for len(got) < len(want) {
		n, err := out.Read(got[len(got):len(want)])
		if got = got[:len(got)+n]; err != nil {
			break
		}
	}
	if string(got) != want {
		t.Errorf("watch: %q, want %q", got, want)
	}
	_ = watch.Process.Kill()
	_ = watch.Wait()

	// A mirror carries what is there and what comes.
	to := startAweigh(t, 1)
	mirror := exec.CommandContext(ctx, ctl, "--endpoints", s.addresses[0], "make-mirror", to.addresses[0])
	if err := mirror.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = mirror.Process.Kill(); _ = mirror.Wait() }()
	if got, err := command("", "put", "m", "later"); err != nil {
		t.Fatalf("%v: %s", err, got)
	}
	there := to.client(t, 0)
	for _, key := range []string{"a", "m"} {
		until(t, "the mirror has "+key, 30*time.Second, func() bool {
			r, err := there.Get(ctx, key)
			return err == nil && len(r.Kvs) == 1
		})
	}
}
