package box

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"strings"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/refusal"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/votes"
	"github.com/aweigh/aweigh/votes/reconcile"
)

// FileSuffix ends the names of files with ballots: bundles, as
// votes.MotionBallotReader reads them.
const FileSuffix = ".ballot"

// File is a bundle to be carried to another box. Its name is the SHA-256 of its
// content, so that the same ballots give the same file, and a file that was
// damaged on its way shows it.
type File struct {
	Name string
	Data []byte
}

// FileOf is a bundle as a file.
func FileOf(bundle []byte) File {
	sum := sha256.Sum256(bundle)
	return File{Name: nameOf(sum[:]), Data: bundle}
}

func nameOf(sum []byte) string { return hex.EncodeToString(sum) + FileSuffix }

// Export hands the ballots that are not in a set of another box to emit, in
// files of at most size bytes each (at least one ballot). The same difference
// gives the same files. The zero Set stands for a box of which nothing is
// known. The error wraps that of r or of emit, or ErrDamaged.
func (b *Box) Export(r kv.Reader, without reconcile.Set, size int, emit func(File) error) error {
	var bundle []byte
	var failed error
	flush := func() {
		if len(bundle) > 0 && failed == nil {
			failed = emit(FileOf(bundle))
			bundle = nil
		}
	}
	b.Set().Minus(without, func(id aweigh.Hash) bool {
		raw, ok, err := Load(r, b.scope, id)
		switch {
		case err != nil:
			failed = err
		case !ok:
			failed = fmt.Errorf("%w: ballot %s is not stored", ErrDamaged, id.Short())
		default:
			if len(bundle)+len(raw) > size {
				flush()
			}
			bundle = append(bundle, raw...)
		}
		return failed == nil
	})
	flush()
	return failed
}

// ErrFileName is returned at the end of a file whose content does not match its
// name. The ballots read from it were whole; others may be missing.
var ErrFileName = errors.New("box: the file's content is not what its name says")

// FileReader reads a file that Export made, or any bundle.
type FileReader struct {
	*votes.MotionBallotReader
	name string
	sum  hash.Hash
}

// ReadFile reads a file of some name. If that is a hash, the content must have
// it; any other name is accepted.
func ReadFile(name string, r io.Reader, limits votes.BallotFileLimits) *FileReader {
	sum := sha256.New()
	return &FileReader{votes.NewMotionBallotReader(io.TeeReader(r, sum), limits), name, sum}
}

// Next is like that of the MotionBallotReader, but that the last error is
// ErrFileName instead of io.EOF where it must be.
func (f *FileReader) Next() (votes.MotionBallot, error) {
	v, err := f.MotionBallotReader.Next()
	if err == io.EOF && named(f.name) && f.name != nameOf(f.sum.Sum(nil)) {
		err = fmt.Errorf("%w: %s", ErrFileName, f.name)
	}
	return v, err
}

// named reports whether a file's name is a hash.
func named(name string) bool {
	sum, err := hex.DecodeString(strings.TrimSuffix(name, FileSuffix))
	return err == nil && len(sum) == sha256.Size && strings.HasSuffix(name, FileSuffix)
}

// Imported states what became of the ballots of a file.
type Imported struct {
	Added, Repeated, Equivocated, Refused int
	Reasons                               []Refusal // of the first MaxReasons that were refused
}

// Refusal states why one ballot was not taken.
type Refusal struct {
	Ballot int // its number in the file, from 0
	What   votes.MotionBallot
	Err    error
}

// MaxReasons bounds the reasons that Imported lists.
const MaxReasons = 100

// Import gives every ballot of a file to take, which is a box's Offer with what
// makes it durable. Ballots that are refused are counted; importing a file again
// only repeats. The error is that of the file, which may have given some ballots
// before, or of take where it is no refusal.
func Import(f *FileReader, take func(votes.MotionBallot) (Outcome, error)) (done Imported, err error) {
	for n := 0; ; n++ {
		v, err := f.Next()
		if err == io.EOF {
			return done, nil
		}
		if err != nil {
			return done, err
		}
		out, err := take(v)
		switch {
		case err != nil && !isRefusal(err):
			return done, err
		case err != nil:
			done.Refused++
			if len(done.Reasons) < MaxReasons {
				done.Reasons = append(done.Reasons, Refusal{n, v.WithoutComment(), err})
			}
		case out == Repeated:
			done.Repeated++
		case out == Equivocated:
			done.Equivocated++
		default:
			done.Added++
		}
	}
}

// isRefusal reports whether an error means that a box refused a ballot, rather
// than that something failed.
func isRefusal(err error) bool {
	return refusal.Of(err) != refusal.Internal
}
