package e2e

import (
	"os"
	"syscall"
	"testing"
)

// smallDisk mounts a file system of a size at a new directory, or skips.
func smallDisk(t *testing.T, dir, size string) {
	t.Helper()
	must(t, os.Mkdir(dir, 0o700))
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "mode=700,size="+size); err != nil {
		t.Skipf("a small disk cannot be mounted here (%v): run as root, with CAP_SYS_ADMIN", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Errorf("unmount %s: %v", dir, err)
		}
	})
}

// readOnly lets nobody write to a small disk, or everybody again.
func readOnly(t *testing.T, dir string, on bool) {
	t.Helper()
	flags := uintptr(syscall.MS_REMOUNT)
	if on {
		flags |= syscall.MS_RDONLY
	}
	must(t, syscall.Mount("tmpfs", dir, "tmpfs", flags, ""))
}
