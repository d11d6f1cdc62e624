package config

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
)

func flags(t *testing.T, args ...string) *pflag.FlagSet {
	t.Helper()
	f := pflag.NewFlagSet("test", pflag.ContinueOnError)
	f.String("api-listen", "default", "")
	f.StringSlice("listen", []string{"x"}, "")
	f.Bool("insecure", false, "")
	f.Duration("timeout", time.Second, "")
	f.Int("conns", 0, "")
	if err := f.Parse(args); err != nil {
		t.Fatal(err)
	}
	return f
}

func written(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "c.yaml")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestFlagsGoBeforeEnvironmentBeforeFileBeforeDefaults(t *testing.T) {
	name := written(t, "api-listen: file\nlisten: [a, b]\n")
	for _, c := range []struct {
		name, env, path, want string
		args                  []string
	}{
		{"default", "", "", "default", nil},
		{"file", "", name, "file", nil},
		{"environment", "env", name, "env", nil},
		{"flag", "env", name, "flag", []string{"--api-listen=flag"}},
		{"flag with the default's value", "env", name, "default", []string{"--api-listen=default"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.env != "" {
				t.Setenv("AWEIGH_API_LISTEN", c.env)
			}
			k, err := Load(flags(t, c.args...), c.path)
			if err != nil {
				t.Fatal(err)
			}
			if got := k.String("api-listen"); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestListsComeFromEverywhere(t *testing.T) {
	get := func(path string, args ...string) string {
		k, err := Load(flags(t, args...), path)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(k.Strings("listen"), "|")
	}
	name := written(t, "listen: [a, b]\n")
	if got := get(""); got != "x" {
		t.Errorf("default: %q", got)
	}
	if got := get(name); got != "a|b" {
		t.Errorf("file: %q", got)
	}
	if got := get(name, "--listen=c,d"); got != "c|d" {
		t.Errorf("flag: %q", got)
	}
	t.Setenv("AWEIGH_LISTEN", "e,f g")
	if got := get(name); got != "e|f|g" {
		t.Errorf("environment: %q", got)
	}
}

func TestNumbersComeFromEverywhere(t *testing.T) {
	name := written(t, "conns: 40\n")
	get := func(args ...string) int {
		k, err := Load(flags(t, args...), name)
		if err != nil {
			t.Fatal(err)
		}
		return k.Int("conns")
	}
	if got := get(); got != 40 {
		t.Errorf("file: %d", got)
	}
	if got := get("--conns=42"); got != 42 {
		t.Errorf("flag: %d", got)
	}
	t.Setenv("AWEIGH_CONNS", "41")
	if got := get(); got != 41 {
		t.Errorf("environment: %d", got)
	}
}

func TestUnknownKeysAreRefusedWithTheirLine(t *testing.T) {
	for text, want := range map[string]string{
		"# x\ninsecure: true\napi-lisen: y\n": `:3: unknown key "api-lisen"; did you mean "api-listen"?`,
		"api:\n  listen: x\n":                 `:1: unknown key "api"`,
		"zzzzzzzzzzzzzz: 1\n":                 `:1: unknown key "zzzzzzzzzzzzzz"`,
		"a: [":                                "c.yaml",
	} {
		_, err := Load(flags(t), written(t, text))
		if !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %s", text, err, want)
		}
	}
	if _, err := Load(flags(t), "missing.yaml"); !errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrConfig) {
		t.Errorf("no file: %v", err)
	}
}

func TestValuesOfAnotherTypeAreRefusedWithTheirPlace(t *testing.T) {
	for text, want := range map[string]string{
		"\ninsecure: maybe\n":          `:2: insecure is true or false, not "maybe"`,
		"timeout: soon\n":              `:1: timeout is a length of time like 10s, 1h30m or 2160h, not "soon"`,
		"timeout: 10\n":                `:1: timeout is a length of time like 10s, 1h30m or 2160h, not 10`,
		"conns: many\n":                `:1: conns is a whole number, not "many"`,
		"conns: 1.5\n":                 `:1: conns is a whole number, not 1.5`,
		"listen: x\n":                  `:1: listen is a list like [a, b], not "x"`,
		"\nlisten: [\"\"]\n":           `:2: listen: entry 1 of the list is empty`,
		"listen: [x, \" \"]\n":         `:1: listen: entry 2 of the list is empty`,
		"listen: [x, [y]]\n":           `:1: listen is a list of texts, and a list is none`,
		"api-listen: {host: x}\n":      `:1: api-listen is a text, not a map; put it in quotes`,
		"api-listen: 7177\n":           `:1: api-listen is a text, not 7177; put it in quotes`,
		"api-listen:\n":                `:1: api-listen is a text, not nothing`,
		"insecure: true\n---\nlisten:": `:2: a second document begins`,
		"---\n# x\n---\n":              `:3: a second document begins`,
	} {
		_, err := Load(flags(t), written(t, text))
		if !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %s", text, err, want)
		}
	}
	for _, text := range []string{"---\ninsecure: true\n", "timeout: 10s\nlisten: []\nconns: 40\n", ""} {
		if _, err := Load(flags(t), written(t, text)); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
	for name, value := range map[string]string{"AWEIGH_INSECURE": "maybe", "AWEIGH_TIMEOUT": "10", "AWEIGH_CONNS": "x"} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(name, value)
			if _, err := Load(flags(t), ""); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), name+": ") {
				t.Errorf("%s=%s: %v", name, value, err)
			}
		})
	}
}

func TestMisspeltVariablesAreRefusedAndForeignOnesAreNot(t *testing.T) {
	t.Setenv("AWEIGH_SERVICE_HOST", "10.0.0.1") // as Kubernetes sets it
	if _, err := Load(flags(t), ""); err != nil {
		t.Errorf("a foreign variable: %v", err)
	}
	t.Run("replaced", func(t *testing.T) {
		t.Setenv("AWEIGH_API_OPEN", "true")
		if _, err := Load(flags(t), ""); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), "AWEIGH_INSECURE replaces it") {
			t.Errorf("a former variable: %v", err)
		}
	})
	if _, err := Load(flags(t), written(t, "api-open: true\n")); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), ":1: api-open is not a setting any more; insecure replaces it") {
		t.Errorf("a former key: %v", err)
	}
	t.Setenv("AWEIGH_API_LISTN", "x")
	if _, err := Load(flags(t), ""); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), "AWEIGH_API_LISTEN") {
		t.Errorf("a misspelt variable: %v", err)
	}
}

func TestEmptyVariablesAreRefused(t *testing.T) {
	for name, values := range map[string][]string{"AWEIGH_API_LISTEN": {""}, "AWEIGH_LISTEN": {"", ",", " "}, "AWEIGH_INSECURE": {""}} {
		for _, v := range values {
			t.Run(name+"="+v, func(t *testing.T) {
				t.Setenv(name, v)
				if _, err := Load(flags(t), ""); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), name) {
					t.Errorf("got %v", err)
				}
			})
		}
	}
}
