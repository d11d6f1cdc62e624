package scenario

import (
	"cmp"
	"embed"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/aweigh/aweigh/internal/must"
)

//go:embed library/*.yaml
var library embed.FS

// Library lists the scenarios that come with this program: the general ones, those for one attack or fault each, and
// those that break something on purpose; by name within each.
func Library() []Named {
	var list []Named
	names := libraryNames()
	slices.SortStableFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(listedAt(a), listedAt(b)), strings.Compare(a, b)) // files come otherwise: "sybil-" before "sybil."
	})
	for _, name := range names {
		s, err := FromLibrary(name)
		must.OK(err, "reading scenario "+name)
		list = append(list, Named{Name: name, About: s.About})
	}
	return list
}

// general are the scenarios to begin with.
var general = []string{"default", "quiet", "everything", "thousand"}

// listedAt is where a scenario stands in the list.
func listedAt(name string) int {
	switch i := slices.Index(general, name); {
	case i >= 0:
		return i
	case strings.HasPrefix(name, "over-"):
		return len(general) + 1
	}
	return len(general)
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
	source, err := library.ReadFile("library/" + name + ".yaml")
	if err != nil {
		hint := `"aweigh sim scenarios" lists those that there are`
		if near := likely(name, libraryNames()); near != "" {
			hint = fmt.Sprintf("did you mean %q?", near)
		}
		return nil, fmt.Errorf("%w: the library has no scenario %q; %s", ErrInvalid, name, hint)
	}
	return source, nil
}

func libraryNames() []string {
	files, err := fs.Glob(library, "library/*.yaml")
	must.OK(err, "listing the library")
	for i, f := range files {
		files[i] = strings.TrimSuffix(path.Base(f), ".yaml")
	}
	return files
}
