package backup

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/aweigh/aweigh"
	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/client"
	"github.com/aweigh/aweigh/internal/home"
	"github.com/aweigh/aweigh/internal/syncdir"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/store/diskstore"
	"github.com/aweigh/aweigh/votes"
)

// Progress gets how many bytes of how many are copied.
type Progress func(done, total int64)

// Maker makes backups of the node in a directory.
type Maker struct {
	From     home.Dir
	Keys     bool // copy the keys as well
	Progress Progress
	Signer   votes.PrivateKey // the node's identity
}

// Running backs up a node that runs, into a directory that must not exist. It
// appears under its name when it is whole and durable.
func (k Maker) Running(ctx context.Context, to string, m Manifest, c *client.Client) (Manifest, error) {
	return k.into(to, m, func(w *writer) error {
		scopes, err := c.Scopes(ctx)
		if err != nil {
			return err
		}
		for _, x := range scopes {
			if x.Held {
				w.m.Scopes = append(w.m.Scopes, Scope{Prefix: string(x.Prefix), Scope: hex.EncodeToString(x.Id), Height: x.Height})
			}
		}
		return c.Backup(ctx, func(r *aweighv1.BackupResponse) error {
			if r.Header != nil {
				w.m.Height, w.total = r.Header.Height, int64(r.TotalBytes)
			}
			if r.File == "" {
				return nil
			}
			if !filepath.IsLocal(r.File) || filepath.Base(r.File) != r.File {
				return fmt.Errorf("backup: the node sent a file called %q", r.File)
			}
			return w.write("store/"+r.File, 0o600, r.Data)
		})
	})
}

// Stopped backs up a node that does not run. The error wraps diskstore.ErrLocked
// if it does.
func (k Maker) Stopped(to string, m Manifest) (_ Manifest, err error) {
	if _, err := os.Stat(k.From.Store()); err != nil {
		return m, fmt.Errorf("backup: there is nothing to back up: %w", err)
	}
	s, err := diskstore.Open(k.From.Store(), diskstore.Options{})
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	g, err := k.From.ReadGenesis()
	if err != nil {
		return m, err
	}
	state, err := scope.Open(s, g.Hash())
	if err != nil {
		return m, fmt.Errorf("backup: the store in %s: %w", k.From, err)
	}
	return k.into(to, m, func(w *writer) error {
		w.m.Height = uint64(state.Height())
		if w.m.Scopes, err = held(s, "", g.Hash(), nil); err != nil {
			return err
		}
		return s.Copy(func(files []diskstore.CopyFile) error {
			for _, f := range files {
				w.total += f.Size
			}
			for _, f := range files {
				if err := w.copy("store/"+f.Name, 0o600, func() (io.ReadCloser, error) { return f.Open() }); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// held adds to a list the scope of a prefix, if it is in a store, and those below it.
func held(s kv.Reader, prefix string, id aweigh.ScopeID, all []Scope) ([]Scope, error) {
	state, err := scope.Open(s, id)
	if err != nil {
		return all, nil // the node does not hold it
	}
	all = append(all, Scope{Prefix: prefix, Scope: id.String(), Height: uint64(state.Height())})
	below, err := state.Delegations()
	for i := 0; i < len(below) && err == nil; i++ {
		all, err = held(s, string(below[i].Prefix), below[i].Child, all)
	}
	return all, err
}

// into makes the directory with the node's small files, and what fill adds.
func (k Maker) into(to string, m Manifest, fill func(*writer) error) (_ Manifest, err error) {
	if _, err := os.Lstat(to); err == nil {
		return m, fmt.Errorf("%w: %s", ErrThere, to)
	}
	partial := to + ".partial"
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return m, fmt.Errorf("backup: %w", err)
	}
	err = os.Mkdir(partial, 0o700)
	if errors.Is(err, fs.ErrExist) {
		return m, fmt.Errorf("backup: %w: remove it if an interrupted backup left it", err)
	}
	if err != nil {
		var path *fs.PathError
		if errors.As(err, &path) {
			path.Path = to // as people named it
		}
		return m, fmt.Errorf("backup: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(partial))
		}
	}()
	peer, err := machine.PeerOf(k.Signer)
	if err != nil {
		return m, err
	}
	m.Format, m.Keys, m.Key, m.Node = format, k.Keys, k.Signer.Public(), string(peer)
	w := &writer{dir: partial, m: m, progress: k.Progress}
	if err := os.Mkdir(filepath.Join(partial, "store"), 0o700); err != nil {
		return m, fmt.Errorf("backup: %w", err)
	}
	small := []string{k.From.Genesis(), k.From.Config()}
	if k.Keys {
		small = append(small, k.From.Identity(), k.From.Anchor())
	}
	for _, name := range small {
		err := w.copy(filepath.Base(name), 0o600, func() (io.ReadCloser, error) { return os.Open(name) })
		if err != nil && (!errors.Is(err, fs.ErrNotExist) || name == k.From.Genesis() || name == k.From.Identity()) {
			return m, err
		}
	}
	if err := errors.Join(fill(w), w.finish()); err != nil {
		return m, err
	}
	raw, err := json.MarshalIndent(w.m, "", "  ")
	if err != nil {
		return m, err
	}
	signature := k.Signer.Sign(votes.ContextBackup, raw)
	if err := errors.Join(durable(filepath.Join(partial, manifestName), raw), durable(filepath.Join(partial, signatureName), signature)); err != nil {
		return m, err
	}
	if err := errors.Join(syncdir.Sync(filepath.Join(partial, "store")), syncdir.Sync(partial)); err != nil {
		return m, err
	}
	if err := os.Rename(partial, to); err != nil {
		return m, fmt.Errorf("backup: %w", err)
	}
	return w.m, syncdir.Sync(filepath.Dir(to))
}

// writer writes files one after another, and notes what it wrote.
type writer struct {
	dir         string
	m           Manifest
	progress    Progress
	done, total int64 // bytes of the store

	name string // of the file being written
	file *os.File
	hash hash.Hash
	size int64
}

// write adds to a file, which is made if it is not the last one written to.
func (w *writer) write(name string, mode fs.FileMode, data []byte) error {
	if name != w.name {
		if err := w.finish(); err != nil {
			return err
		}
		f, err := os.OpenFile(filepath.Join(w.dir, filepath.FromSlash(name)), os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
		if err != nil {
			return fmt.Errorf("backup: %w", err)
		}
		w.name, w.file, w.hash, w.size = name, f, sha256.New(), 0
	}
	if _, err := w.file.Write(data); err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	w.hash.Write(data)
	w.size += int64(len(data))
	if w.done += int64(len(data)); w.progress != nil && w.total > 0 {
		w.progress(min(w.done, w.total), w.total)
	}
	return nil
}

// finish makes the last file durable.
func (w *writer) finish() error {
	if w.file == nil {
		return nil
	}
	f := w.file
	w.file, w.name = nil, ""
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	name, err := filepath.Rel(w.dir, f.Name())
	if err != nil {
		return err
	}
	w.m.Files = append(w.m.Files, File{Name: filepath.ToSlash(name), Size: w.size, SHA256: hex.EncodeToString(w.hash.Sum(nil))})
	return nil
}

// copy writes a whole file.
func (w *writer) copy(name string, mode fs.FileMode, open func() (io.ReadCloser, error)) error {
	r, err := open()
	if err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	defer r.Close()
	buf := make([]byte, 1<<20)
	for {
		n, err := r.Read(buf)
		if n > 0 || errors.Is(err, io.EOF) {
			if err := w.write(name, mode, buf[:n]); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return w.finish()
		}
		if err != nil {
			return fmt.Errorf("backup: %s: %w", name, err)
		}
	}
}

func durable(name string, data []byte) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Sync(), f.Close())
}
