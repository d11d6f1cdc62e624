package backup

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/home"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/node"
	"github.com/aweigh/aweigh/node/fsck"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/store/diskstore"
	"github.com/aweigh/aweigh/votes"
)

// signed writes a manifest and its signature, by a key of its own.
func signed(t *testing.T, dir string, m Manifest) {
	t.Helper()
	key, err := votes.GenerateKey(votes.Ed25519, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	sign(t, dir, m, key)
}

func sign(t *testing.T, dir string, m Manifest, key votes.PrivateKey) {
	t.Helper()
	peer, err := machine.PeerOf(key)
	if err != nil {
		t.Fatal(err)
	}
	m.Format, m.Key, m.Node, m.Network = format, key.Public(), string(peer), cmp.Or(m.Network, aweigh.Hash{}.String())
	raw, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{manifestName: raw, signatureName: key.Sign(votes.ContextBackup, raw)} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func restore(from, to string) error {
	_, err := Restorer{To: home.Dir(to), Signer: Anyone}.Restore(context.Background(), from)
	return err
}

// TestBackupsNameTheirNetwork: the network of a backup is shown, also for a node without a name.
func TestBackupsNameTheirNetwork(t *testing.T) {
	for _, network := range []string{"\x1b[2J\nall is well", "3f1a", strings.Repeat("g", 64)} {
		from := t.TempDir()
		signed(t, from, Manifest{Network: network})
		if _, err := readManifest(from); !errors.Is(err, ErrBroken) || strings.ContainsAny(err.Error(), "\x1b\n") {
			t.Errorf("network %q: %v", network, err)
		}
	}
}

// TestBackupsThatNameFilesElsewhereAreRefused: a backup is data from somewhere.
func TestBackupsThatNameFilesElsewhereAreRefused(t *testing.T) {
	for _, name := range []string{"../evil", "/etc/evil", "store/../../evil", "", `store\..\evil`, "store", "store/", "store/.", "store/a/b", "evil", "backup.json", "store/\x00"} {
		from, to := t.TempDir(), filepath.Join(t.TempDir(), "node")
		signed(t, from, Manifest{Keys: true, Files: []File{{Name: name}}})
		if err := restore(from, to); !errors.Is(err, ErrBroken) {
			t.Errorf("a file called %q: %v", name, err)
		}
		if _, err := os.Stat(to); err == nil {
			t.Errorf("a file called %q: something was written", name)
		}
	}
	for _, files := range [][]File{
		{{Name: "store/a", Size: -1}}, {{Name: "store/a"}, {Name: "store/a"}}, {{Name: "genesis.cbor", Size: maxSmall + 1}},
		{{Name: "store/a", Size: 1 << 62}, {Name: "store/b", Size: 1 << 62}},
	} {
		from := t.TempDir()
		signed(t, from, Manifest{Files: files})
		if _, err := readManifest(from); !errors.Is(err, ErrBroken) {
			t.Errorf("files %v: %v", files, err)
		}
	}
}

// TestRestoreThatFailsLeavesNothing: not even the keys that it had copied.
func TestRestoreThatFailsLeavesNothing(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	signed(t, from, Manifest{Keys: true, Files: []File{
		{Name: "anchor.key", Size: 1, SHA256: "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"}, // x
		{Name: "store/000001.log", Size: 1, SHA256: "00"},
	}})
	if err := os.WriteFile(filepath.Join(from, "anchor.key"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := restore(from, to); !errors.Is(err, ErrBroken) {
		t.Errorf("restored what is not there: %v", err)
	}
	isEmpty(t, to)
}

func isEmpty(t *testing.T, dir string) {
	t.Helper()
	left, err := os.ReadDir(dir)
	if err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
}

// made is a backup of an anchor that decided alone, and its identity.
func made(t *testing.T) (dir string, m Manifest, identity votes.PrivateKey) {
	t.Helper()
	d := home.Dir(t.TempDir())
	identity, err := d.NewKey(d.Identity())
	if err != nil {
		t.Fatal(err)
	}
	anchor, err := d.NewKey(d.Anchor())
	if err != nil {
		t.Fatal(err)
	}
	peer, err := machine.PeerOf(identity)
	if err != nil {
		t.Fatal(err)
	}
	g, err := machine.NewGenesis("n", aweigh.InstantOf(time.Now()), scope.OpenPolicy(quorum.BFT), machine.Founder{Name: "solo", Key: anchor.Public(), Peer: peer})
	if err == nil {
		err = d.SaveGenesis(g)
	}
	if err != nil {
		t.Fatal(err)
	}
	s, err := diskstore.Open(d.Store(), diskstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	n, err := node.New(node.Config{Genesis: g, Identity: identity, Anchor: &anchor, Store: s, Listen: []string{"/ip4/127.0.0.1/tcp/0"}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- n.Run(ctx) }()
	put := scope.Op{Kind: scope.OpPut, Key: []byte("/who"), Value: []byte("anne")}
	if _, err := n.Txn(ctx, scope.Txn{Success: []scope.Op{put}}, node.Once{}); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := errors.Join(<-ended, s.Close()); err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(t.TempDir(), "backup")
	m, err = Maker{From: d, Keys: true, Signer: identity}.Stopped(dir, Manifest{Network: g.Hash().String(), Name: "solo"})
	if err != nil {
		t.Fatal(err)
	}
	return dir, m, identity
}

// TestBackupsAreThoseOfTheirNode: a backup is taken of the node that was named, as it
// signed it.
func TestBackupsAreThoseOfTheirNode(t *testing.T) {
	dir, m, identity := made(t)
	if len(m.Scopes) != 1 || m.Scopes[0].Height != m.Height || m.Height == 0 {
		t.Errorf("the manifest says %+v", m.Scopes)
	}
	for signer, want := range map[string]error{"": ErrSigner, "12D3KooWGzxzKZYveHXtpG6AsrUJBcWxHBFS2HsEoGTxrMLvKXtf": ErrSigner, "garbage": ErrName, m.Node: nil, m.Key.String(): nil, Anyone: nil} {
		to := t.TempDir()
		r, err := Restorer{To: home.Dir(to), Signer: signer}.Restore(t.Context(), dir)
		if !errors.Is(err, want) {
			t.Errorf("of %q: %v", signer, err)
		}
		if want != nil {
			isEmpty(t, to)
		} else if err == nil && r.Report.Scopes[0].Head.Height != aweigh.Height(m.Height) {
			t.Errorf("%+v", r.Report)
		}
	}
	to := home.Dir(t.TempDir())
	if err := os.WriteFile(to.Identity(), []byte(identity.Encode()+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := (Restorer{To: to}).Restore(t.Context(), dir); err != nil {
		t.Errorf("the node's own backup: %v", err)
	}
	raw, err := os.ReadFile(filepath.Join(dir, manifestName))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, manifestName), append(raw, ' '), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readManifest(dir); !errors.Is(err, ErrBroken) {
		t.Errorf("a manifest that was changed: %v", err)
	}
}

// TestForgedBackupsAreRefused: one value is changed, everything adds up but the state,
// and the forger signs the manifest.
func TestForgedBackupsAreRefused(t *testing.T) {
	dir, m, _ := made(t)
	s, err := diskstore.Open(filepath.Join(dir, "store"), diskstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	forged := 0
	if err := s.Scan(nil, nil, false, func(k, v []byte) bool {
		if k[0] == 's' && k[17] == 'k' {
			value := append(append([]byte(nil), v[:len(v)-4]...), "mary"...)
			if err := s.Commit([]kv.Op{kv.Set(append([]byte(nil), k...), value)}, true); err != nil {
				t.Fatal(err)
			}
			forged++
		}
		return true
	}); err != nil || forged != 1 {
		t.Fatalf("%d versions of the key, %v", forged, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	m.Files = m.Files[:0]
	for _, name := range []string{"genesis.cbor", "identity.key", "anchor.key"} {
		m.Files = append(m.Files, fileOf(t, dir, name))
	}
	all, err := os.ReadDir(filepath.Join(dir, "store"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range all {
		if inStore.MatchString("store/" + f.Name()) {
			m.Files = append(m.Files, fileOf(t, dir, "store/"+f.Name()))
		}
	}
	signed(t, dir, m)
	to := t.TempDir()
	if err := restore(dir, to); !errors.Is(err, fsck.ErrForged) {
		t.Errorf("%v", err)
	}
	isEmpty(t, to)
}

func fileOf(t *testing.T, dir, name string) File {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(raw)
	return File{Name: name, Size: int64(len(raw)), SHA256: hex.EncodeToString(sum[:])}
}

// TestRestoreFollowsNoLink, of a file or of the folder of the store, and writes no more
// than was signed.
func TestRestoreFollowsNoLink(t *testing.T) {
	for what, change := range map[string]func(dir string) error{
		"a linked file": func(dir string) error {
			name := filepath.Join(dir, "anchor.key")
			return errors.Join(os.Rename(name, name+".moved"), os.Symlink(name+".moved", name))
		},
		"a linked store": func(dir string) error {
			name := filepath.Join(dir, "store")
			return errors.Join(os.Rename(name, name+".moved"), os.Symlink(name+".moved", name))
		},
		"a linked manifest": func(dir string) error {
			name := filepath.Join(dir, manifestName)
			return errors.Join(os.Rename(name, name+".moved"), os.Symlink(name+".moved", name))
		},
		"a file that is longer": func(dir string) error {
			f, err := os.OpenFile(filepath.Join(dir, "anchor.key"), os.O_APPEND|os.O_WRONLY, 0)
			if err != nil {
				return err
			}
			_, err = f.Write(make([]byte, 1<<20))
			return errors.Join(err, f.Close())
		},
	} {
		dir, _, _ := made(t)
		if err := change(dir); err != nil {
			t.Fatal(err)
		}
		to := t.TempDir()
		if err := restore(dir, to); !errors.Is(err, ErrBroken) {
			t.Errorf("%s: %v", what, err)
		}
		isEmpty(t, to)
	}
}

// TestInterruptedRestoreLeavesNothing, wherever it is.
func TestInterruptedRestoreLeavesNothing(t *testing.T) {
	dir, m, _ := made(t)
	for what, begin := range map[string]func(*Restorer, context.CancelFunc){
		"while it copies":  func(r *Restorer, stop context.CancelFunc) { r.Copied = func(_, _ int64) { stop() } },
		"while it checks":  func(r *Restorer, stop context.CancelFunc) { r.Checked = func(fsck.Progress) { stop() } },
		"before it begins": func(_ *Restorer, stop context.CancelFunc) { stop() },
	} {
		to := t.TempDir()
		ctx, stop := context.WithCancel(t.Context())
		r := Restorer{To: home.Dir(to), Signer: m.Node}
		begin(&r, stop)
		if _, err := r.Restore(ctx, dir); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", what, err)
		}
		isEmpty(t, to)
		stop()
	}
}
