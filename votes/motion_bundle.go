package votes

import (
	"errors"
	"fmt"
	"io"
)

// AppendMotionBallots appends the ballots to a bundle: a CBOR sequence (RFC
// 8742), their encodings one after another.
func AppendMotionBallots(bundle []byte, ballots ...MotionBallot) []byte {
	for i := range ballots {
		bundle = append(bundle, ballots[i].Encode()...)
	}
	return bundle
}

// BallotFileLimits bound what a MotionBallotReader reads. Zero values stand for
// DefaultBallotFileLimits.
type BallotFileLimits struct {
	Ballots int   // how many
	Bytes   int64 // how long in all
}

// DefaultBallotFileLimits are a full ballot box of ballots of ordinary size.
var DefaultBallotFileLimits = BallotFileLimits{Ballots: 1_000_000, Bytes: 1 << 30}

// ballotFileError states where a bundle is bad. It wraps ErrMalformed,
// ErrBallotFileLimit or the error of the underlying reader; io.ErrUnexpectedEOF too
// where the bundle ends within a ballot.
type ballotFileError struct {
	Ballot int   // the first bad ballot, from 0: so many are good
	Offset int64 // where it begins, in bytes
	Err    error
}

// Error implements error.
func (e *ballotFileError) Error() string {
	return fmt.Sprintf("ballot %d of the bundle, at byte %d: %v", e.Ballot+1, e.Offset, e.Err)
}

// Unwrap is the reason.
func (e *ballotFileError) Unwrap() error { return e.Err }

// ErrBallotFileLimit is wrapped if a bundle is longer than the limits allow.
var ErrBallotFileLimit = errors.New("votes: bundle over the limit")

// MotionBallotReader reads a bundle as a stream, in memory that does not depend
// on its length. It skips nothing: after the first bad ballot it ends.
type MotionBallotReader struct {
	r       io.Reader
	limits  BallotFileLimits
	buf     []byte // read, not yet decoded
	room    []byte // what buf lies in
	ended   error  // of r; io.EOF at its end
	ballots int
	offset  int64
	failed  error
}

// NewMotionBallotReader reads a bundle from r.
func NewMotionBallotReader(r io.Reader, limits BallotFileLimits) *MotionBallotReader {
	if limits.Ballots == 0 {
		limits.Ballots = DefaultBallotFileLimits.Ballots
	}
	if limits.Bytes == 0 {
		limits.Bytes = DefaultBallotFileLimits.Bytes
	}
	return &MotionBallotReader{r: r, limits: limits, room: make([]byte, 16*MaxMotionBallot)}
}

// Next is the next ballot, or io.EOF after the last. Any other error is a
// *ballotFileError, and comes again when called again.
func (r *MotionBallotReader) Next() (MotionBallot, error) {
	if r.failed != nil {
		return MotionBallot{}, r.failed
	}
	r.fill()
	b, n, err := r.decode()
	if err == io.EOF {
		r.failed = io.EOF
		return MotionBallot{}, io.EOF
	}
	if err != nil {
		r.failed = &ballotFileError{Ballot: r.ballots, Offset: r.offset, Err: err}
		return MotionBallot{}, r.failed
	}
	r.buf = r.buf[n:]
	r.ballots++
	r.offset += int64(n)
	return b, nil
}

// Offset is how many bytes of ballots were read.
func (r *MotionBallotReader) Offset() int64 { return r.offset }

// decode reads the ballot that buf begins with.
func (r *MotionBallotReader) decode() (MotionBallot, int, error) {
	if len(r.buf) == 0 {
		return MotionBallot{}, 0, r.ended
	}
	if r.ballots >= r.limits.Ballots {
		return MotionBallot{}, 0, fmt.Errorf("%w: more than %d ballots", ErrBallotFileLimit, r.limits.Ballots)
	}
	b, n, err := decodeMotionBallot(r.buf[:min(len(r.buf), MaxMotionBallot)])
	switch {
	case err == nil && r.offset+int64(n) > r.limits.Bytes:
		return b, 0, fmt.Errorf("%w: more than %d bytes", ErrBallotFileLimit, r.limits.Bytes)
	case err == nil:
		return b, n, nil
	case errors.Is(err, io.ErrUnexpectedEOF) && r.ended != io.EOF:
		return b, 0, r.ended
	}
	return b, 0, err
}

// fill makes buf hold a whole ballot, if r has one.
func (r *MotionBallotReader) fill() {
	if len(r.buf) >= MaxMotionBallot || r.ended != nil {
		return
	}
	n := copy(r.room, r.buf)
	for idle := 0; n < len(r.room) && r.ended == nil; {
		more, err := r.r.Read(r.room[n:])
		n += more
		if idle++; more > 0 {
			idle = 0
		}
		if r.ended = err; err == nil && idle > 100 {
			r.ended = io.ErrNoProgress
		}
	}
	r.buf = r.room[:n]
}
