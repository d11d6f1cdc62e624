package backup

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/aweigh/aweigh/internal/home"
	"github.com/aweigh/aweigh/node"
	"github.com/aweigh/aweigh/store"
)

// Restore makes a node of a backup in a directory that holds none; keys and
// settings that are there stay. The files are checked on the way, and the store
// is opened once before it gets its name. observer makes a new identity where
// there is none, for a node that does not vote.
func Restore(from string, to home.Dir, observer bool, progress Progress) (m Manifest, err error) {
	if m, err = ReadManifest(from); err != nil {
		return m, err
	}
	for _, name := range []string{to.Genesis(), to.Store()} {
		if _, err := os.Lstat(name); err == nil {
			return m, fmt.Errorf("%w: %s: choose another directory, or move it away", ErrThere, name)
		}
	}
	if observer && is(to.Anchor()) {
		return m, fmt.Errorf("%w: %s: with it, the node is no observer", ErrThere, to.Anchor())
	}
	if !m.Keys && !observer && !is(to.Identity()) {
		return m, fmt.Errorf("%w in the backup, nor in %s: put identity.key there, and anchor.key for an anchor, or restore --as-observer", ErrKeys, to)
	}
	fresh := to.Store() + ".restoring"
	if err := os.MkdirAll(string(to), 0o700); err != nil {
		return m, fmt.Errorf("backup: %w", err)
	}
	if err := os.Mkdir(fresh, 0o700); err != nil {
		return m, fmt.Errorf("backup: %w: remove it if an interrupted restore left it", err)
	}
	made := []string{fresh}
	defer func() {
		for _, name := range made {
			if err != nil {
				err = errors.Join(err, os.RemoveAll(name))
			}
		}
	}()
	done := int64(0)
	for _, f := range m.Files {
		target := filepath.Join(string(to), f.Name)
		switch base, inStore := strings.CutPrefix(f.Name, "store/"); {
		case inStore:
			target = filepath.Join(fresh, base)
		case observer && target == to.Anchor() || observer && target == to.Identity():
			continue // what runs beside the anchor must not be it
		case f.Name == filepath.Base(to.Genesis()):
			target = to.Genesis() + ".restoring" // last: it makes the directory a node
		case is(target):
			if same(target, f.SHA256) || target == to.Config() {
				continue
			}
			return m, fmt.Errorf("%w: %s, and it differs from the backup's", ErrThere, target)
		}
		if !strings.HasPrefix(target, fresh) {
			made = append(made, target)
		}
		if err := fetch(filepath.Join(from, filepath.FromSlash(f.Name)), target, f); err != nil {
			return m, err
		}
		if done += f.Size; progress != nil {
			progress(done, m.Size())
		}
	}
	if observer && !is(to.Identity()) {
		if _, err := to.NewKey(to.Identity()); err != nil {
			return m, err
		}
	}
	if err := opens(fresh, to.Genesis()+".restoring"); err != nil {
		return m, err
	}
	if err := os.Rename(fresh, to.Store()); err != nil {
		return m, fmt.Errorf("backup: %w", err)
	}
	if err := os.Rename(to.Genesis()+".restoring", to.Genesis()); err != nil {
		return m, fmt.Errorf("backup: %w", err)
	}
	return m, errors.Join(syncDir(to.Store()), syncDir(string(to)))
}

func is(name string) bool {
	_, err := os.Lstat(name)
	return !errors.Is(err, fs.ErrNotExist)
}

// same reports whether a file has a hash.
func same(name, sum string) bool {
	raw, err := os.ReadFile(name)
	got := sha256.Sum256(raw)
	return err == nil && hex.EncodeToString(got[:]) == sum
}

// fetch copies a file of a backup, if it is what the manifest says.
func fetch(from, to string, f File) error {
	in, err := os.Open(from)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrBroken, err)
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(out, sum), in)
	if err := errors.Join(err, out.Sync(), out.Close()); err != nil {
		return fmt.Errorf("backup: %s: %w", f.Name, err)
	}
	if n != f.Size || hex.EncodeToString(sum.Sum(nil)) != f.SHA256 {
		return fmt.Errorf("%w: %s is not what was backed up; take another backup", ErrBroken, from)
	}
	return nil
}

// opens makes sure that a node could start from a store.
func opens(dir, genesis string) (err error) {
	want, err := os.ReadFile(genesis)
	if err != nil {
		return fmt.Errorf("%w: it has no genesis: %w", ErrBroken, err)
	}
	s, err := store.OpenPebble(dir, store.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	g, ok, err := node.StoredGenesis(s)
	if err != nil {
		return err
	}
	if !ok || string(g.Encode()) != string(want) {
		return fmt.Errorf("%w: its store belongs to another network than its genesis", ErrBroken)
	}
	return nil
}
