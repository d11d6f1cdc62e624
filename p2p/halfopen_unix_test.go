//go:build unix

package p2p

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/internal/testwait"
)

// stoppable, in the environment, makes this test program a host that waits
// until its standard input ends.
const stoppable = "AWEIGH_TEST_STOPPABLE_HOST"

// TestStoppableHost is the other process of the test below.
func TestStoppableHost(t *testing.T) {
	t.Parallel()
	if os.Getenv(stoppable) == "" {
		t.Skip("started by TestStoppedProcessIsNoticed")
	}
	h := start(t, func(c *Config) { c.Listen = []string{os.Getenv(stoppable)} })
	fmt.Println("host", h.Addrs()[0])
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// TestStoppedProcessIsNoticed: a member that stops responding, as when its
// machine loses power, is disconnected within the time that aliveEvery and
// aliveWithin allow, over either transport, and found again when it goes on.
func TestStoppedProcessIsNoticed(t *testing.T) {
	testshort.Skip(t)
	t.Parallel()
	for name, listen := range map[string]string{"TCP": "/ip4/127.0.0.1/tcp/0", "QUIC": "/ip4/127.0.0.1/udp/0/quic-v1"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			other := exec.Command(os.Args[0], "-test.run=^TestStoppableHost$")
			other.Env = append(os.Environ(), stoppable+"="+listen)
			in, err := other.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			out, err := other.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := other.Start(); err != nil {
				t.Fatal(err)
			}
			defer func() {
				_ = other.Process.Signal(syscall.SIGCONT)
				in.Close()
				if err := other.Wait(); err != nil {
					t.Error(err)
				}
			}()
			line, err := bufio.NewReader(out).ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			infos, err := ParsePeers([]string{strings.TrimSpace(strings.TrimPrefix(line, "host "))})
			if err != nil {
				t.Fatal(err)
			}
			member := infos[0].ID
			a := start(t, func(c *Config) {
				c.Bootstrap, c.Members = infos, []peer.ID{member}
				c.Listen = []string{"/ip4/127.0.0.1/tcp/0", "/ip4/127.0.0.1/udp/0/quic-v1"}
			})
			up := func() bool { return a.peers.find(member) != nil }
			testwait.Until(t, "they connect", up)
			if err := other.Process.Signal(syscall.SIGSTOP); err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			testwait.Until(t, "the stopped process is let go", func() bool { return !up() })
			if took := time.Since(began); took > aliveEvery+aliveWithin+time.Second {
				t.Errorf("that took %v", took)
			}
			if err := other.Process.Signal(syscall.SIGCONT); err != nil {
				t.Fatal(err)
			}
			testwait.Until(t, "it is found again", up)
		})
	}
}
