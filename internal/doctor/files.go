package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/aweigh/aweigh/internal/show"
)

// maxFiles bounds how many files of the store are looked at.
const maxFiles = 10_000

// checkFiles reports whether the node alone can read its keys, and can write.
func (e *exam) checkFiles() {
	var open, fixed []string
	for _, name := range []string{string(e.Dir), e.Dir.Identity(), e.Dir.Anchor()} {
		info, err := os.Stat(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			e.fail("permissions", err.Error(), "run this as the user that the files belong to")
			return
		}
		if info.Mode().Perm()&0o077 == 0 {
			continue
		}
		text := fmt.Sprintf("%s (%04o)", filepath.Base(name), info.Mode().Perm())
		if e.Fix {
			if err := os.Chmod(name, info.Mode().Perm()&0o700); err == nil {
				fixed = append(fixed, text)
				continue
			}
		}
		open = append(open, text)
	}
	switch {
	case len(open) > 0:
		e.fail("permissions", "others may read or write "+strings.Join(open, ", "),
			fmt.Sprintf("chmod -R go-rwx %s, or run this with --fix; a key that others have read is no secret any more", show.Word(string(e.Dir))))
	case len(fixed) > 0:
		e.warn("permissions", "corrected "+strings.Join(fixed, ", "), "find out which users may have read the keys meanwhile")
	default:
		e.ok("permissions", "the keys and the directory are for their owner alone")
	}
	e.checkOwner()
}

// checkOwner reports whether everything belongs to one user, and that one can
// write. A node that once ran as root leaves files that no other user can open.
func (e *exam) checkOwner() {
	owner, known := ownerOf(string(e.Dir))
	if !known {
		e.skip("owner", "this system does not report it")
		return
	}
	foreign, seen := "", 0
	err := filepath.WalkDir(string(e.Dir), func(name string, _ fs.DirEntry, err error) error {
		if err != nil {
			if errors.Is(err, fs.ErrNotExist) {
				return nil // a running node removes files
			}
			return err
		}
		if seen++; seen > maxFiles {
			return fs.SkipAll
		}
		if o, ok := ownerOf(name); ok && o != owner && foreign == "" {
			foreign = fmt.Sprintf("%s belongs to user %d, and the directory to %d", name, o, owner)
		}
		return nil
	})
	chown := fmt.Sprintf("chown -R %d %s, while the node is stopped", owner, show.Word(string(e.Dir)))
	switch me := os.Geteuid(); {
	case foreign != "":
		e.fail("owner", foreign, chown)
	case me != owner && me == 0:
		e.warn("owner", fmt.Sprintf("the directory belongs to user %d, and this runs as root", owner),
			"never run the node as root: it leaves files that its own user cannot open")
	case me != owner:
		e.fail("owner", fmt.Sprintf("the directory belongs to user %d, and this is user %d", owner, me), "run this, and the node, as its owner")
	case err != nil:
		e.fail("owner", err.Error(), chown)
	default:
		e.ok("owner", "everything belongs to the user that runs this")
	}
}
