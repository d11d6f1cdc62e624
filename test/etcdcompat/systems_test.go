package etcdcompat

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/aweigh/aweigh/test/etcdcompat/ports"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// system is a running etcd, or network of nodes.
type system struct {
	name      string
	dir       string   // of a devnet
	addresses []string // of each node
	conns     []*grpc.ClientConn
	compacted int64 // revision

	network string   // identity of a devnet's
	apis    []string // addresses of Aweigh's own API, of each node
}

// conn is a connection without what etcd's client adds, such as its repetitions.
func (s *system) conn(node int) *grpc.ClientConn { return s.conns[node%len(s.conns)] }

// client is etcd's own, connected with one node.
func (s *system) client(t *testing.T, node int) *clientv3.Client {
	t.Helper()
	return newClient(t, s.addresses[node])
}

// etcdBinary is the path of the etcd to compare with.
func etcdBinary(t *testing.T) string {
	t.Helper()
	path := os.Getenv("AWEIGH_ETCD")
	if path == "" {
		t.Skip("AWEIGH_ETCD does not name a binary of etcd 3.6; \"scripts/etcd\" builds one and prints its path")
	}
	return path
}

// aweighBinary is the program under test, built from the module around this one.
var aweighBinary = sync.OnceValues(func() (string, error) {
	if path := os.Getenv("AWEIGH_PROGRAM"); path != "" {
		return path, nil
	}
	dir, err := os.MkdirTemp("", "etcdcompat-")
	if err != nil {
		return "", err
	}
	built = dir
	path := filepath.Join(dir, "aweigh")
	if out, err := exec.Command("go", "build", "-C", "../..", "-o", path, "./cmd/aweigh").CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return path, nil
})

// built is the folder of the program under test, if these tests built it.
var built string

func TestMain(m *testing.M) {
	code := m.Run()
	if built != "" {
		_ = os.RemoveAll(built)
	}
	os.Exit(code)
}

// startEtcd starts a cluster of one member.
func startEtcd(t *testing.T) *system {
	t.Helper()
	client, peer := freeAddress(t), freeAddress(t)
	launch(t, exec.Command(etcdBinary(t), "--data-dir", t.TempDir(), "--log-level", "fatal", "--unsafe-no-fsync",
		"--listen-client-urls", "http://"+client, "--advertise-client-urls", "http://"+client,
		"--listen-peer-urls", "http://"+peer, "--initial-advertise-peer-urls", "http://"+peer,
		"--initial-cluster", "default=http://"+peer), nil)
	s := &system{name: "etcd"}
	s.dial(t, client)
	s.greet(t)
	return s
}

// startAweigh starts a devnet, every node a process of its own.
func startAweigh(t *testing.T, nodes int) *system {
	t.Helper()
	program, err := aweighBinary()
	if err != nil {
		t.Fatal(err)
	}
	s := &system{name: "aweigh", dir: t.TempDir()}
	cmd := exec.Command(program, "devnet", "--processes", "--nodes", fmt.Sprint(nodes), "--data-dir", s.dir, "--etcd-listen", "127.0.0.1:0")
	state := t.TempDir()
	cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+state, "XDG_RUNTIME_DIR="+state, "XDG_CONFIG_HOME="+state)
	banner := launch(t, cmd, regexp.MustCompile(`^ready`))
	for _, line := range banner {
		if f := strings.Fields(line); len(f) > 3 && strings.HasPrefix(f[0], "node") {
			s.dial(t, f[2])
			s.apis = append(s.apis, f[3])
		} else if _, id, ok := strings.Cut(line, "network "); ok && s.network == "" {
			s.network = id
		}
	}
	if len(s.conns) != nodes {
		t.Fatalf("the devnet tells of %d nodes that serve etcd's API, not %d:\n%s", len(s.conns), nodes, strings.Join(banner, "\n"))
	}
	return s
}

// greet writes what a devnet holds from its start, so that revisions are the same.
func (s *system) greet(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	put := &etcdserverpb.PutRequest{Key: []byte("/greeting"), Value: []byte("Anchors aweigh!")}
	if _, err := etcdserverpb.NewKVClient(s.conn(0)).Put(ctx, put, grpc.WaitForReady(true)); err != nil {
		t.Fatalf("%s does not start: %v", s.name, err)
	}
}

func (s *system) dial(t *testing.T, address string) {
	t.Helper()
	c, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	s.addresses, s.conns = append(s.addresses, address), append(s.conns, c)
}

// launch starts a process that ends with the test, and gives what it printed
// until a line fits, or nothing if ready is nil.
func launch(t *testing.T, cmd *exec.Cmd, ready *regexp.Regexp) (lines []string) {
	t.Helper()
	var log bytes.Buffer
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	found, read := make(chan bool, 1), make(chan struct{})
	var mu sync.Mutex
	go func() {
		defer close(read)
		for in := bufio.NewScanner(out); in.Scan(); {
			mu.Lock()
			lines = append(lines, in.Text())
			mu.Unlock()
			if ready != nil && ready.MatchString(in.Text()) {
				found <- true
				break
			}
		}
		_, _ = io.Copy(io.Discard, out)
		close(found)
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGINT)
		timer := time.AfterFunc(20*time.Second, func() { _ = cmd.Process.Kill() })
		defer timer.Stop()
		<-read
		err := cmd.Wait()
		var exit *exec.ExitError
		if t.Failed() && (err != nil && !errors.As(err, &exit) || log.Len() > 0) {
			t.Logf("%s: %v\n%s", filepath.Base(cmd.Path), err, log.String())
		}
	})
	if ready == nil {
		return nil
	}
	select {
	case ok := <-found:
		if !ok {
			t.Fatalf("%s ended", cmd)
		}
	case <-time.After(60 * time.Second):
		t.Fatalf("%s is not ready", cmd)
	}
	mu.Lock()
	defer mu.Unlock()
	return lines
}

func freeAddress(t *testing.T) string {
	t.Helper()
	free, err := ports.Free(1)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("127.0.0.1:%d", free[0])
}
