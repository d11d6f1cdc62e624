package sim

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/aweigh/aweigh/internal/must"
)

//go:embed scenarios/*.yaml
var scenarios embed.FS

// Library lists the scenarios that come with this program, by name.
func Library() []Named {
	var list []Named
	for _, name := range libraryNames() {
		s, err := FromLibrary(name)
		must.OK(err, "reading scenario "+name)
		list = append(list, Named{Name: name, About: s.About})
	}
	return list
}

// FromLibrary is a scenario of the library.
func FromLibrary(name string) (Scenario, error) {
	source, err := LibrarySource(name)
	if err != nil {
		return Scenario{}, err
	}
	return Decode(source)
}

// LibrarySource is the YAML of a scenario of the library, with its comments.
func LibrarySource(name string) ([]byte, error) {
	source, err := scenarios.ReadFile("scenarios/" + name + ".yaml")
	if err != nil {
		return nil, fmt.Errorf("%w: the library has no such one: %s", ErrScenario, unknown(name, libraryNames()))
	}
	return source, nil
}

func libraryNames() []string {
	files, err := fs.Glob(scenarios, "scenarios/*.yaml")
	must.OK(err, "listing the library")
	for i, f := range files {
		files[i] = strings.TrimSuffix(path.Base(f), ".yaml")
	}
	return files
}
