// Package ballotdir exchanges ballots through a directory, as on a stick that
// is carried between machines: one side writes its ballots, the other reads
// them. Both may be done again at any time, and by any number of sides at once.
package ballotdir

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/aweigh/aweigh/internal/syncdir"
	"github.com/aweigh/aweigh/votes/box"
)

// Write puts a file into the directory, which is made if need be. An existing
// file is kept: its name is the hash of its content. When Write returns, the
// file is on the medium, whole or not at all.
func Write(dir string, f box.File) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("ballotdir: %w", err)
	}
	name := filepath.Join(dir, f.Name)
	if info, err := os.Stat(name); err == nil && info.Size() == int64(len(f.Data)) {
		return nil
	}
	temp, err := os.CreateTemp(dir, "."+f.Name+".*")
	if err != nil {
		return fmt.Errorf("ballotdir: %w", err)
	}
	_, err = temp.Write(f.Data)
	err = errors.Join(err, temp.Chmod(0o644), temp.Sync(), temp.Close())
	if err == nil {
		err = os.Rename(temp.Name(), name)
	}
	if err != nil {
		os.Remove(temp.Name())
		return fmt.Errorf("ballotdir: %s: %w; nothing was left there, run the same again", name, err)
	}
	if err := syncdir.Sync(dir); err != nil {
		return fmt.Errorf("ballotdir: %w", err)
	}
	return nil
}

// Files are the names of the files with ballots in a directory, in order.
func Files(dir string) (names []string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("ballotdir: %w", err)
	}
	for _, e := range entries {
		if !e.IsDir() && strings.HasSuffix(e.Name(), box.FileSuffix) && !strings.HasPrefix(e.Name(), ".") {
			names = append(names, e.Name())
		}
	}
	return names, nil
}
