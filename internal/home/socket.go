package home

import (
	"fmt"
	"path/filepath"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/running"
	"github.com/aweigh/aweigh/internal/socket"
)

// Socket is the path of the Unix socket of the node's API: run/api.sock in the directory. If that is too long for a
// socket, it stands beside the list of running nodes, under a name made of the directory's. Errors wrap socket.ErrLong.
func (d Dir) Socket() (string, error) {
	dir, err := filepath.Abs(string(d))
	if err != nil {
		return "", fmt.Errorf("home: %w", err)
	}
	path := filepath.Join(dir, "run", "api.sock")
	if len(path) <= socket.Longest {
		return path, nil
	}
	list, err := running.Dir()
	if err != nil {
		return "", err
	}
	short := filepath.Join(list, aweigh.Sum([]byte(dir)).Short()+".sock")
	if len(short) > socket.Longest {
		return "", fmt.Errorf("%w for the node's API: %s, and %s too; choose a shorter --data-dir, or set XDG_RUNTIME_DIR to a short directory of this user",
			socket.ErrLong, path, short)
	}
	return short, nil
}
