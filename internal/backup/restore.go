package backup

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/aweigh/aweigh/internal/home"
	"github.com/aweigh/aweigh/internal/syncdir"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/node/fsck"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/store/diskstore"
	"github.com/aweigh/aweigh/votes"
)

// Restorer makes a node of a backup.
type Restorer struct {
	To       home.Dir
	Observer bool     // make a new identity where there is none, for a node that does not vote
	Signer   string   // peer ID or key of the node that the backup must be of; Anyone: any node
	Copied   Progress // of files
	Checked  func(fsck.Progress)
	// Trusts is asked whether to begin with the root scope's chain of rosters that the store holds; nil: with any.
	Trusts func(g scope.Genesis, chain []scope.Handover) error
}

// Anyone as a Signer takes a backup of any node: its content is checked against its
// genesis, and the genesis itself is unchecked.
const Anyone = "any"

// Restored is the result of a restore.
type Restored struct {
	Manifest
	Report *fsck.Report
	Left   []Setting // of the backup, which the node does not have
}

// Restore makes a node of a backup in a directory that holds none; keys and
// settings that are there stay. The files are checked on the way, and the store
// is audited before it gets its name. If ctx ends, nothing is left. Errors wrap
// ErrThere, ErrBroken, ErrKeys, ErrSigner, fsck.ErrForged, fsck.ErrUnvouched, or are
// that of Trusts or of ctx. An observer gets settings with which it runs beside the original, and a backup of Anyone
// brings harmless settings alone.
func (k Restorer) Restore(ctx context.Context, from string) (r Restored, err error) {
	to, m := k.To, &r.Manifest
	if *m, err = readManifest(from); err != nil {
		return r, err
	}
	if err := k.knows(m); err != nil {
		return r, err
	}
	for _, name := range []string{to.Genesis(), to.Store()} {
		if _, err := os.Lstat(name); err == nil {
			return r, fmt.Errorf("%w: %s: choose another directory, or move it away", ErrThere, name)
		}
	}
	if k.Observer && is(to.Anchor()) {
		return r, fmt.Errorf("%w: %s: with it, the node is not an observer", ErrThere, to.Anchor())
	}
	if !m.Keys && !k.Observer && !is(to.Identity()) {
		if err := k.whole(ctx, from, m); err != nil { // else keys are fetched for nothing
			return r, err
		}
		return r, fmt.Errorf("%w in the backup, nor in %s: put identity.key there, and anchor.key for an anchor, or restore --as-observer", ErrKeys, to)
	}
	fresh, before := to.Store()+".restoring", is(string(to))
	if err := os.MkdirAll(string(to), 0o700); err != nil {
		return r, fmt.Errorf("backup: %w", err)
	}
	err = os.Mkdir(fresh, 0o700)
	if errors.Is(err, fs.ErrExist) {
		return r, fmt.Errorf("backup: %w: remove it if an interrupted restore left it", err)
	}
	if err != nil {
		return r, fmt.Errorf("backup: %w", err)
	}
	made := []string{fresh}
	defer func() {
		for _, name := range made {
			if err != nil {
				err = errors.Join(err, os.RemoveAll(name))
			}
		}
		if err != nil && !before {
			_ = os.Remove(string(to)) // what others put there stays
		}
	}()
	genesis := to.Genesis() + ".restoring" // last: it makes the directory a node
	done, brought := int64(0), false       // the settings
	for _, f := range m.Files {
		target := filepath.Join(string(to), f.Name)
		switch base, inStore := strings.CutPrefix(f.Name, "store/"); {
		case inStore:
			target = filepath.Join(fresh, base)
		case k.Observer && (target == to.Anchor() || target == to.Identity()):
			continue // what runs beside the anchor must not be it
		case target == to.Genesis():
			target = genesis
		case is(target):
			if same(target, f.SHA256) || target == to.Config() {
				continue
			}
			return r, fmt.Errorf("%w: %s, and it differs from the backup's", ErrThere, target)
		}
		if !strings.HasPrefix(target, fresh) {
			if is(target) {
				return r, fmt.Errorf("%w: %s: remove it if an interrupted restore left it", ErrThere, target)
			}
			made = append(made, target)
		}
		brought = brought || target == to.Config()
		if err := k.fetch(ctx, from, target, f, done, m.Size()); err != nil {
			return r, err
		}
		done += f.Size
	}
	if k.Observer && !is(to.Identity()) {
		made = append(made, to.Identity())
		if _, err := to.NewKey(to.Identity()); err != nil {
			return r, err
		}
	}
	if r.Report, err = k.audit(ctx, fresh, genesis, m); err != nil {
		return r, err
	}
	if brought {
		if r.Left, err = k.settle(genesis); err != nil {
			return r, err
		}
	}
	if err := os.Rename(fresh, to.Store()); err != nil {
		return r, fmt.Errorf("backup: %w", err)
	}
	made = append(made, to.Store())
	if err := os.Rename(genesis, to.Genesis()); err != nil {
		return r, fmt.Errorf("backup: %w", err)
	}
	made = append(made, to.Genesis())
	made = nil
	return r, errors.Join(syncdir.Sync(to.Store()), syncdir.Sync(string(to)))
}

// knows reports whether the caller expects a backup of this node: by name, or as the
// node whose identity is in the directory.
func (k Restorer) knows(m *Manifest) error {
	if _, err := votes.ParsePublicKey(k.Signer); k.Signer != "" && k.Signer != Anyone && err != nil && machine.AuthorOf(machine.Peer(k.Signer)).IsZero() {
		if _, private := votes.ParsePrivateKey(k.Signer); private == nil { // which no error shows
			return fmt.Errorf("%w: %w", ErrName, err)
		}
		return fmt.Errorf("%w: %q; a peer ID, like 12D3KooW..., or a key, as \"aweigh status\" and \"aweigh backup\" print them, or %q", ErrName, k.Signer, Anyone)
	}
	peer, err := machine.PeerOfKey(m.Key)
	if err != nil || string(peer) != m.Node {
		return fmt.Errorf("%w: it names node %q, and the key of another", ErrBroken, m.Node)
	}
	switch k.Signer {
	case Anyone, m.Node, m.Key.String():
		return nil
	case "":
		raw, err := os.ReadFile(k.To.Identity())
		if own, bad := votes.ParsePrivateKey(string(raw)); err == nil && bad == nil && own.Public().ID() == m.Key.ID() {
			return nil
		}
		return fmt.Errorf("%w: it is of node %s (%q) of network %.8s; if that is the one that you mean, add --from %s", ErrSigner, m.Node, m.Name, m.Network, m.Node)
	}
	return fmt.Errorf("%w: it is of node %s (%q), not of %s", ErrSigner, m.Node, m.Name, k.Signer)
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

// whole checks all files of a backup, and makes nothing.
func (k Restorer) whole(ctx context.Context, from string, m *Manifest) error {
	done := int64(0)
	for _, f := range m.Files {
		if err := k.copy(ctx, from, io.Discard, f, done, m.Size()); err != nil {
			return err
		}
		done += f.Size
	}
	return nil
}

// fetch copies a file of a backup, if it matches the manifest, and no more of it.
func (k Restorer) fetch(ctx context.Context, from, to string, f File, done, all int64) error {
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	err = k.copy(ctx, from, out, f, done, all)
	if later := errors.Join(out.Sync(), out.Close()); err == nil && later != nil {
		err = fmt.Errorf("backup: %s: %w", f.Name, later)
	}
	return err
}

// copy writes a file of a backup to out, and reports whether it matches the manifest.
func (k Restorer) copy(ctx context.Context, from string, out io.Writer, f File, done, all int64) error {
	in, err := plain(from, f.Name)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %w", ErrBroken, err)
	}
	if err != nil {
		return err
	}
	defer in.Close()
	sum, n := sha256.New(), int64(0)
	limited := io.LimitReader(in, f.Size)
	for err == nil {
		var more int64
		if err = ctx.Err(); err == nil {
			more, err = io.CopyN(io.MultiWriter(out, sum), limited, 1<<20)
			n += more
		}
		if k.Copied != nil && more > 0 {
			k.Copied(done+n, all)
		}
	}
	if !errors.Is(err, io.EOF) {
		return fmt.Errorf("backup: %s: %w", f.Name, err)
	}
	info, err := in.Stat()
	if err != nil || n != f.Size || info.Size() != f.Size || hex.EncodeToString(sum.Sum(nil)) != f.SHA256 {
		return fmt.Errorf("%w: %s differs from the file that was backed up; make another backup", ErrBroken, filepath.Join(from, filepath.FromSlash(f.Name)))
	}
	return nil
}

// audit makes sure that a store is what its network made final, and leaves out what
// cannot be checked and is found again.
func (k Restorer) audit(ctx context.Context, dir, genesis string, m *Manifest) (rep *fsck.Report, err error) {
	want, err := os.ReadFile(genesis)
	if err != nil {
		return nil, fmt.Errorf("%w: it has no genesis: %w", ErrBroken, err)
	}
	s, err := diskstore.Open(dir, diskstore.Options{})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	g, ok, err := machine.StoredGenesis(s)
	if err != nil {
		return nil, err
	}
	if !ok || string(g.Encode()) != string(want) || g.Hash().String() != m.Network {
		return nil, fmt.Errorf("%w: its store belongs to another network than its genesis", ErrBroken)
	}
	rep, err = fsck.Store(s, g, func(p fsck.Progress) error {
		if k.Checked != nil {
			k.Checked(p)
		}
		return ctx.Err()
	})
	if err != nil {
		return nil, err
	}
	if k.Trusts != nil {
		chain, err := machine.History{Reader: s, Scope: g.Hash()}.Handovers(0, math.MaxInt)
		if err != nil {
			return nil, err
		}
		if err := k.Trusts(g, chain); err != nil {
			return nil, err
		}
	}
	return rep, fsck.Unhint(s, func(ops []kv.Op) error { return s.Commit(ops, true) })
}
