package home

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aweigh/aweigh/internal/socket"
)

func TestLongDirectoriesHaveAShortSocket(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", "/run/user/1000")
	long := "/" + strings.Repeat("long/", 30) + "node"
	for dir, want := range map[string]string{"/var/lib/aweigh": "/var/lib/aweigh/run", long: "/run/user/1000/aweigh", long + "2": "/run/user/1000/aweigh"} {
		path, err := Dir(dir).Socket()
		if err != nil || filepath.Dir(path) != want || len(path) > socket.Longest {
			t.Errorf("%s: %s, %v", dir, path, err)
		}
	}
	a, _ := Dir(long).Socket()
	if b, _ := Dir(long + "2").Socket(); a == b {
		t.Errorf("two directories have one socket, %s", a)
	}
	t.Setenv("XDG_RUNTIME_DIR", long)
	if path, err := Dir(long).Socket(); !errors.Is(err, socket.ErrLong) {
		t.Errorf("no short place: %s, %v", path, err)
	}
}
