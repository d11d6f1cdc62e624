package diskstore

import (
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// TestFailedLogStaysAPrefix makes one write fail: later writes would leave a
// hole before them, so none may follow, in this file or in a new one.
func TestFailedLogStaysAPrefix(t *testing.T) {
	mem := vfs.NewMem()
	var toggle errorfs.Toggle
	toggle.Injector = errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpFileWrite {
			return errorfs.ErrInjected
		}
		return nil
	})
	d := &diskFS{FS: errorfs.Wrap(mem, &toggle), fault: newFault("")}
	f, err := d.Create("1.log", "")
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"before", "failed", "after"} {
		if text == "failed" {
			toggle.On()
		}
		if n, err := f.Write([]byte(text)); n != len(text) || err != nil {
			t.Errorf("%s: Pebble must not notice: %d %v", text, n, err)
		}
		toggle.Off()
	}
	closed(t, f)
	next, err := d.Create("2.log", "")
	if err != nil {
		t.Fatal(err)
	}
	closed(t, next)
	if d.fault.get() == nil {
		t.Error("nobody will know of the failure")
	}
	info, err := mem.Stat("1.log")
	if err != nil || info.Size() != int64(len("before")) {
		t.Errorf("the log has %d bytes, %v", info.Size(), err)
	}
	if _, err := mem.Stat("2.log"); err == nil {
		t.Error("a newer log makes the torn one look corrupt")
	}
}
