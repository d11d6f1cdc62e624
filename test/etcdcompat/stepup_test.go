package etcdcompat

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// owner runs the program under test as the owner of a devnet's only node.
type owner struct {
	t              *testing.T
	program, dir   string
	socket, secret string
}

func newOwner(t *testing.T, s *system) *owner {
	t.Helper()
	program, err := aweighBinary()
	if err != nil {
		t.Fatal(err)
	}
	sockets, err := filepath.Glob(filepath.Join(s.dir, "*", "run", "api.sock"))
	if err != nil || len(sockets) != 1 {
		t.Fatal(sockets, err)
	}
	o := &owner{t: t, program: program, dir: t.TempDir(), socket: "unix://" + sockets[0]}
	o.secret = filepath.Join(o.dir, "passphrase")
	if err := os.WriteFile(o.secret, []byte("correct horse\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return o
}

// command is one of the program, with the files of the owner's folder.
func (o *owner) command(args ...string) *exec.Cmd {
	c := exec.CommandContext(o.t.Context(), o.program, args...)
	c.Dir = o.dir
	c.Env = append(os.Environ(), "XDG_STATE_HOME="+o.dir, "XDG_RUNTIME_DIR="+o.dir, "XDG_CONFIG_HOME="+o.dir)
	return c
}

func (o *owner) run(args ...string) string {
	o.t.Helper()
	out, err := o.command(args...).CombinedOutput()
	if err != nil {
		o.t.Fatalf("aweigh %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// refuses reports whether a command of the holder of a token is refused: its exit code is 4 then, and 0 or 3 (there is
// no such key) if it is not. Without a token the command is the owner's.
func (o *owner) refuses(token string, args []string, input string) bool {
	o.t.Helper()
	args = append(args, "--api", o.socket)
	if token != "" {
		file := filepath.Join(o.dir, "token")
		if err := os.WriteFile(file, []byte(token+"\n"), 0o600); err != nil {
			o.t.Fatal(err)
		}
		args = append(args, "--token-file", file)
	}
	c := o.command(args...)
	c.Stdin = strings.NewReader(input)
	out, err := c.CombinedOutput()
	switch code := c.ProcessState.ExitCode(); code {
	case 4:
		return true
	case 0, 3:
		return false
	default:
		o.t.Fatalf("aweigh %s: %d, %v\n%s", strings.Join(args, " "), code, err, out)
		return false
	}
}

// voter makes a key, and returns its public part.
func (o *owner) voter(name string) string {
	o.t.Helper()
	o.run("voter", "new", name+".key", "--passphrase-file", o.secret)
	key, err := os.ReadFile(filepath.Join(o.dir, name+".key.pub"))
	if err != nil {
		o.t.Fatal(err)
	}
	return strings.TrimSpace(string(key))
}

// asks sets the approvals of the policy, and waits until they are in force.
func (o *owner) asks(approvals ...string) {
	o.t.Helper()
	for _, a := range approvals {
		o.run("policy", "set", "--approve", a, "--api", o.socket)
		until(o.t, "the policy asks for "+a, 30*time.Second, func() bool {
			return strings.Contains(o.run("policy", "show", "--api", o.socket), a)
		})
	}
}

// open waits for the motion about a key, and returns its ID.
func (o *owner) open(key string) (id string) {
	o.t.Helper()
	about := regexp.MustCompile(`(?m)^([0-9a-f]{8}) .*"` + regexp.QuoteMeta(key) + `"`)
	until(o.t, "a motion about "+key, 30*time.Second, func() bool {
		m := about.FindStringSubmatch(o.run("motion", "ls", "--api", o.socket))
		if m != nil {
			id = m[1]
		}
		return m != nil
	})
	return id
}

func (o *owner) says(choice, id string) {
	o.t.Helper()
	o.run("ballot", choice, id, "--key", "bob.key", "--passphrase-file", o.secret, "--api", o.socket)
}

// TestClientsWaitForASecondPerson: a put of etcd's client returns when the second person has approved it, with the
// revision that it got. If that person rejects it, or says nothing in time, the error says so, and the client neither
// repeats it nor takes it for unknown. etcdctl does the same, where it is at hand.
func TestClientsWaitForASecondPerson(t *testing.T) {
	s := startAweigh(t, 1)
	o := newOwner(t, s)
	bob := o.voter("bob")
	o.asks("prefix=/prod/ window=5m0s step-up=bob,"+bob, "prefix=/soon/ window=2s step-up=bob,"+bob)
	c := s.client(t, 0)
	version := func(key string) (version, revision int64) {
		t.Helper()
		r, err := c.Get(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Kvs) == 0 {
			return 0, 0
		}
		return r.Kvs[0].Version, r.Kvs[0].ModRevision
	}
	type answer struct {
		*clientv3.PutResponse
		err error
	}
	put := func(ctx context.Context, key string) chan answer {
		done := make(chan answer, 1)
		go func() {
			r, err := c.Put(ctx, key, "v", clientv3.WithPrevKV())
			done <- answer{r, err}
		}()
		return done
	}

	done := put(t.Context(), "/prod/a")
	id := o.open("/prod/a")
	select {
	case a := <-done:
		t.Fatalf("it did not wait: %v, %v", a.PutResponse, a.err)
	default:
	}
	o.says("approve", id)
	a := <-done
	if v, at := version("/prod/a"); a.err != nil || v != 1 || a.Header.Revision != at {
		t.Fatalf("approved: %v, %v; version %d of revision %d", a.PutResponse, a.err, v, at)
	}

	done = put(t.Context(), "/prod/a")
	o.says("reject", o.open("/prod/a"))
	a = <-done
	if v, _ := version("/prod/a"); status.Code(a.err) != codes.FailedPrecondition || !strings.Contains(a.err.Error(), "was not carried, and nothing changed: rejected") || v != 1 {
		t.Errorf("rejected: %v, version %d", a.err, v)
	}
	a = <-put(t.Context(), "/soon/a")
	if v, _ := version("/soon/a"); status.Code(a.err) != codes.FailedPrecondition || !strings.Contains(a.err.Error(), "was not carried, and nothing changed: expired") || v != 0 {
		t.Errorf("expired: %v, version %d", a.err, v)
	}

	// At its deadline the client learns that the write waits, and it is one write whatever the client does then.
	soon, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	a = <-put(soon, "/prod/b")
	if status.Code(a.err) != codes.FailedPrecondition || !strings.Contains(a.err.Error(), "waits for approval as motion") {
		t.Errorf("at the deadline: %v", a.err)
	}
	o.says("approve", o.open("/prod/b"))
	until(t, "the write applied", 20*time.Second, func() bool { v, _ := version("/prod/b"); return v > 0 })
	if v, _ := version("/prod/b"); v != 1 {
		t.Errorf("it applied %d times", v)
	}

	ctl := os.Getenv("AWEIGH_ETCDCTL")
	if ctl == "" {
		t.Log("AWEIGH_ETCDCTL does not name a binary of etcdctl 3.6")
		return
	}
	for choice, want := range map[string]string{"approve": "OK\n", "reject": "was not carried, and nothing changed: rejected"} {
		key := "/prod/" + choice
		cmd := exec.CommandContext(t.Context(), ctl, "--endpoints", s.addresses[0], "--command-timeout", "1m", "put", key, "v")
		var out strings.Builder
		cmd.Stdout, cmd.Stderr = &out, &out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		o.says(choice, o.open(key))
		if err := cmd.Wait(); (err == nil) != (choice == "approve") || !strings.Contains(out.String(), want) {
			t.Errorf("etcdctl, %s: %v: %s", choice, err, out.String())
		}
	}
}
