//go:build linux || darwin

package socket

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// otherUserDials names a socket for the process that this test starts as another user.
const otherUserDials = "SOCKET_TEST_DIALS"

func TestMain(m *testing.M) {
	if path := os.Getenv(otherUserDials); path != "" {
		c, err := net.Dial("unix", path)
		if err != nil {
			os.Exit(3)
		}
		_, _ = c.Read(make([]byte, 1)) // until the test has seen it
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// TestTheOtherEndIsOfThisUser: this user is the owner, and another user is refused, though modes allow it to
// connect.
func TestTheOtherEndIsOfThisUser(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "s")
	l, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	own, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	if uid, err := Owner(c); uid != uint32(os.Geteuid()) || errors.Join(err, c.Close()) != nil {
		t.Errorf("this user: %d, %v", uid, err)
	}
	if os.Geteuid() != 0 {
		t.Skip("only root starts processes of other users")
	}
	program := filepath.Join(dir, "stranger")
	test, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Skip("no copy of this program:", err)
	}
	if err := errors.Join(os.WriteFile(program, test, 0o755), os.Chmod(dir, 0o755), os.Chmod(filepath.Dir(dir), 0o755), os.Chmod(path, 0o666)); err != nil {
		t.Fatal(err)
	}
	otherUser := exec.Command(program)
	otherUser.Env = []string{otherUserDials + "=" + path}
	otherUser.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 4177, Gid: 4177}}
	if err := otherUser.Start(); err != nil {
		t.Fatal(err)
	}
	if err := l.(*net.UnixListener).SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if c, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	if _, err := Owner(c); !errors.Is(err, ErrOtherUser) {
		t.Errorf("another user: %v", err)
	}
	if err := errors.Join(c.Close(), otherUser.Wait()); err != nil {
		t.Errorf("another user did not connect: %v", err)
	}
}
