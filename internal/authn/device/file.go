package device

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/aweigh/aweigh"
)

// maxFile bounds the file of a token, in bytes.
const maxFile = 64 << 10

// Token is what a login has given. It prints and logs without its secrets.
type Token struct {
	Issuer  string           `json:"issuer"`
	Network aweigh.NetworkID `json:"network"`
	ID      string           `json:"id_token"` // a secret: it goes to nodes of the network, in the header Authorization
	Refresh string           `json:"refresh_token,omitempty"`
	Until   time.Time        `json:"until"` // the end of ID

	// As in the Config of the login.
	Client string `json:"client,omitempty"`
	CA     string `json:"ca,omitempty"`
}

// String returns the issuer and the network.
func (t Token) String() string { return "token of " + t.Issuer + " for network " + t.Network.Short() }

// Format implements fmt.Formatter: all verbs print String.
func (t Token) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, t.String()) }

// LogValue implements slog.LogValuer.
func (t Token) LogValue() slog.Value { return slog.StringValue(t.String()) }

// path is the file of an issuer and a network.
func (c Config) path() string {
	return filepath.Join(c.Dir, c.Network.Short()+"-"+aweigh.Sum(c.Network[:], []byte(c.Issuer)).String()[:32]+".json")
}

// save writes the token's file. Readers see the old file or the new one.
func (c Config) save(t Token) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("%w: %w", ErrFile, err)
		}
	}()
	text, err := json.Marshal(t)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(c.Dir, "new*") // of mode 0600
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }() // which is gone if all went well
	_, err = f.Write(append(text, '\n'))
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), c.path())
}

// load reads the token's file. The error wraps ErrNone if there is none, ErrFile if it cannot be used.
func (c Config) load() (t Token, err error) {
	f, err := os.Open(c.path())
	if errors.Is(err, fs.ErrNotExist) {
		return t, ErrNone
	}
	if err != nil {
		return t, fmt.Errorf("%w: %w", ErrFile, err)
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return t, fmt.Errorf("%w: %w", ErrFile, err)
	}
	if runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 { // Windows has no such modes
		return t, fmt.Errorf("%w: other users can read %s: log out and in again", ErrFile, f.Name())
	}
	text, err := io.ReadAll(io.LimitReader(f, maxFile))
	if err != nil {
		return t, fmt.Errorf("%w: %w", ErrFile, err)
	}
	if json.Unmarshal(text, &t) != nil || t.ID == "" || t.Issuer != c.Issuer || t.Network != c.Network {
		return Token{}, fmt.Errorf("%w: %s is damaged, or of another network: log in again", ErrFile, f.Name())
	}
	return t, nil
}

// Logins returns what tokens are kept for: the settings with which Current finds each. Files that cannot be used are
// left out.
func Logins(dir string) (all []Config, err error) {
	if dir == "" {
		if dir, err = usualDir(); err != nil {
			return nil, err
		}
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFile, err)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		var t Token
		if err != nil || json.Unmarshal(text, &t) != nil {
			continue
		}
		c := Config{Network: t.Network, Issuer: t.Issuer, Client: t.Client, CA: t.CA, Dir: dir}
		if c.path() == f {
			all = append(all, c)
		}
	}
	return all, nil
}

// Logout removes the token's file; it is no error if there is none. The issuer does not learn of it.
func Logout(c Config) error {
	c, err := c.withDefaults()
	if err != nil {
		return err
	}
	if err := os.Remove(c.path()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %w", ErrFile, err)
	}
	return nil
}
