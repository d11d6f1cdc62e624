package running

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/aweigh/aweigh/internal/testwait"
)

// TestZombiesDoNotRun holds that a process which has ended does not count, though its parent has not asked how it did.
func TestZombiesDoNotRun(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	child := exec.Command("sleep", "1000")
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = child.Wait() }()
	if pid := child.Process.Pid; !alive(pid) {
		t.Errorf("process %d does not run", pid)
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	testwait.Until(t, "the child has ended", func() bool {
		fields := Stat(child.Process.Pid)
		return len(fields) > 0 && fields[0] == "Z"
	})
	dir, err := Dir()
	if err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf(`{"pid": %d, "apis": ["x"]}`, child.Process.Pid)
	if err := errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, "devnet.json"), []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
	if e, err := Find(); !errors.Is(err, ErrNone) {
		t.Errorf("got %+v, %v", e, err)
	}
}
