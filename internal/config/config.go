// Package config brings flags, environment and a YAML file together: a flag
// named api-listen is the variable AWEIGH_API_LISTEN and the key api-listen of
// the file. A flag given goes before the variable, that before the file, and
// that before the flag's default. Unknown keys are refused.
package config

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/knadh/koanf/parsers/yaml"
	"github.com/knadh/koanf/providers/env/v2"
	"github.com/knadh/koanf/providers/file"
	"github.com/knadh/koanf/providers/posflag"
	"github.com/knadh/koanf/v2"
	"github.com/spf13/pflag"

	"github.com/aweigh/aweigh/internal/nearest"
)

// ErrConfig is wrapped by errors about settings.
var ErrConfig = errors.New("config: invalid settings")

// prefix begins the names of environment variables.
const prefix = "AWEIGH_"

// Load reads the settings of flags, and of the file if path is not empty. Errors
// wrap ErrConfig, but those of reading the file.
func Load(flags *pflag.FlagSet, path string) (*koanf.Koanf, error) {
	var known []string
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Name != "config" && f.Name != "help" {
			known = append(known, f.Name)
		}
	})
	k := koanf.New("\x00") // no nesting: names contain dots nowhere
	if path != "" {
		if err := loadFile(k, path, flags, known); err != nil {
			return nil, err
		}
	}
	for _, v := range os.Environ() {
		if err := checkVariable(v, flags, known); err != nil {
			return nil, err
		}
	}
	fromEnv := env.Provider("\x00", env.Opt{Prefix: prefix, TransformFunc: func(name, value string) (string, any) {
		key := keyOf(name)
		f := flags.Lookup(key)
		if f == nil {
			return "", nil
		}
		if isList(f) {
			return key, entries(value)
		}
		return key, value
	}})
	if err := k.Load(fromEnv, nil); err != nil {
		return nil, fmt.Errorf("%w: environment: %w", ErrConfig, err)
	}
	if err := k.Load(posflag.Provider(flags, "\x00", k), nil); err != nil {
		return nil, fmt.Errorf("%w: flags: %w", ErrConfig, err)
	}
	return k, nil
}

func isList(f *pflag.Flag) bool {
	_, is := f.Value.(pflag.SliceValue)
	return is
}

// entries are those of a list in a variable.
func entries(value string) []string {
	return strings.FieldsFunc(value, func(r rune) bool { return r == ',' || r == ' ' })
}

// keyOf is the key that an environment variable stands for.
func keyOf(variable string) string {
	return strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(variable, prefix)), "_", "-")
}

func loadFile(k *koanf.Koanf, path string, flags *pflag.FlagSet, known []string) error {
	source, err := os.ReadFile(path)
	if err != nil {
		return err // about the file, and not about its content
	}
	if line := secondDocument(source); line > 0 {
		return fmt.Errorf("%w: %s:%d: a second document begins; the settings are one", ErrConfig, path, line)
	}
	if err := k.Load(file.Provider(path), yaml.Parser()); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrConfig, path, err)
	}
	top := k.Raw()
	for _, name := range slices.Sorted(maps.Keys(top)) {
		if by := replaced(name, known); by != "" {
			return fmt.Errorf("%w: %s:%d: %s is not a setting any more; %s replaces it", ErrConfig, path, lineOf(source, name), name, by)
		}
		if !slices.Contains(known, name) {
			return fmt.Errorf("%w: %s:%d: unknown key %q%s", ErrConfig, path, lineOf(source, name), name, hint(name, known))
		}
		if err := checkValue(flags.Lookup(name), top[name]); err != nil {
			return fmt.Errorf("%w: %s:%d: %w", ErrConfig, path, lineOf(source, name), err)
		}
	}
	return nil
}

// lineOf is the line of a key at the top of a YAML file.
func lineOf(source []byte, key string) int {
	at := regexp.MustCompile(`(?m)^["']?` + regexp.QuoteMeta(key) + `["']?\s*:`).FindIndex(source)
	if at == nil {
		return 1
	}
	return 1 + strings.Count(string(source[:at[0]]), "\n")
}

// checkVariable refuses a variable that is a setting of another type, that is set
// and empty, or that looks like a misspelt one. Others that start with AWEIGH_
// belong to other programs: Kubernetes sets such for a service of that name.
func checkVariable(v string, flags *pflag.FlagSet, known []string) error {
	name, value, _ := strings.Cut(v, "=")
	if !strings.HasPrefix(name, prefix) {
		return nil
	}
	key := keyOf(name)
	if f := flags.Lookup(key); f != nil {
		if err := CheckText(f, value); err != nil {
			return fmt.Errorf("%w: %s: %w", ErrConfig, name, err)
		}
		if f.Value.Type() == "string" && value == "" || isList(f) && len(entries(value)) == 0 {
			return fmt.Errorf("%w: %s is set and empty: give it a value, or unset it", ErrConfig, name)
		}
		return nil
	}
	if by := replaced(key, known); by != "" {
		return fmt.Errorf("%w: %s is not a setting any more; %s%s replaces it", ErrConfig, name, prefix, strings.ToUpper(by))
	}
	if near, distance := nearest.Name(key, known, 2); distance > 0 && len(near) > 4 {
		return fmt.Errorf("%w: unknown variable %s; did you mean %s%s?", ErrConfig, name, prefix,
			strings.ToUpper(strings.ReplaceAll(near, "-", "_")))
	}
	return nil
}

// ReadFile is the settings of a file alone, without checks of its keys; a file
// that is not there has none.
func ReadFile(path string) (*koanf.Koanf, error) {
	k := koanf.New("\x00")
	err := k.Load(file.Provider(path), yaml.Parser())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s: %w", ErrConfig, path, err)
	}
	return k, nil
}

// former are settings of earlier versions, and the settings that replace them.
var former = map[string]string{"api-open": "insecure"}

// replaced is the setting that replaces a former one, "" for others.
func replaced(name string, known []string) string {
	if by := former[name]; slices.Contains(known, by) && !slices.Contains(known, name) {
		return by
	}
	return ""
}

func hint(name string, known []string) string {
	if near, _ := nearest.Name(name, known, max(2, len(name)/2)); near != "" {
		return fmt.Sprintf("; did you mean %q?", near)
	}
	return ""
}
