package config

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/spf13/pflag"
)

// FuzzLoad: a file is refused with ErrConfig, or gives settings under the names
// of flags alone.
func FuzzLoad(f *testing.F) {
	for _, text := range []string{"name: a\nlisten: [b, c]", "name:\n  deep: 1", "listen: {a: b}", "a: &x [*x]", "name: !!binary aGk=", "\x00", "- a"} {
		f.Add(text)
	}
	path := filepath.Join(f.TempDir(), "config.yaml")
	f.Fuzz(func(t *testing.T, text string) {
		flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
		flags.String("name", "", "")
		flags.StringSlice("listen", nil, "")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		k, err := Load(flags, path)
		if err != nil {
			if !errors.Is(err, ErrConfig) {
				t.Fatal(err)
			}
			return
		}
		for _, key := range k.Keys() {
			if flags.Lookup(key) == nil {
				t.Fatalf("the unknown key %q is taken", key)
			}
		}
	})
}
