package votes

import (
	"bytes"
	stded25519 "crypto/ed25519"
	"errors"
	"io"
	"testing"
	"testing/iotest"
)

func ed25519Public(b []byte) stded25519.PublicKey { return stded25519.PublicKey(b) }

// bundleOf are n ballots of one voter on n motions, some long, and their bundle.
func bundleOf(t testing.TB, n int) ([]MotionBallot, []byte) {
	t.Helper()
	k, long := keyOf(t, Ed25519, 1), keyOf(t, MLDSA65, 2)
	var all []MotionBallot
	for i := range n {
		signer := k
		if i%17 == 3 {
			signer = long
		}
		all = append(all, motionBallot(t, signer, vote(byte(i), Approve), ""))
	}
	return all, AppendMotionBallots(nil, all...)
}

func readAll(r *MotionBallotReader) (n int, err error) {
	for {
		if _, err := r.Next(); err != nil {
			return n, err
		}
		n++
	}
}

// However the bytes come, the same ballots are read.
func TestBundlesAreReadAsStreams(t *testing.T) {
	want, bundle := bundleOf(t, 300)
	for name, wrap := range map[string]func(io.Reader) io.Reader{
		"at once":       func(r io.Reader) io.Reader { return r },
		"byte by byte":  iotest.OneByteReader,
		"in halves":     iotest.HalfReader,
		"end with data": iotest.DataErrReader,
	} {
		r := NewMotionBallotReader(wrap(bytes.NewReader(bundle)), BallotFileLimits{})
		for i := range want {
			b, err := r.Next()
			if err != nil || !bytes.Equal(b.Encode(), want[i].Encode()) {
				t.Fatalf("%s: ballot %d is %v: %v", name, i, b, err)
			}
		}
		for range 2 {
			if _, err := r.Next(); err != io.EOF {
				t.Fatalf("%s: after the last: %v", name, err)
			}
		}
		if r.Offset() != int64(len(bundle)) {
			t.Errorf("%s: %d bytes read of %d", name, r.Offset(), len(bundle))
		}
	}
}

// The first bad ballot ends the reading, and is named by number and offset.
func TestBundlesSkipNothing(t *testing.T) {
	all, bundle := bundleOf(t, 40)
	offset := 0
	for i := range all {
		n := len(all[i].Encode())
		for _, c := range []struct {
			name string
			bend func() []byte
			want error
		}{
			{"a wrong tag", func() []byte { b := bytes.Clone(bundle); b[offset] ^= 1; return b }, ErrMalformed},
			{"an empty item between", func() []byte {
				return append(append(bytes.Clone(bundle[:offset]), 0xf6), bundle[offset:]...)
			}, ErrMalformed},
			{"cut off", func() []byte { return bundle[:offset+n-1] }, io.ErrUnexpectedEOF},
			{"cut at once", func() []byte { return bundle[:offset+1] }, io.ErrUnexpectedEOF},
			{"a failing disk", nil, iotest.ErrTimeout},
		} {
			var source io.Reader
			if c.bend != nil {
				source = bytes.NewReader(c.bend())
			} else {
				source = io.MultiReader(bytes.NewReader(bundle[:offset+7]), iotest.ErrReader(iotest.ErrTimeout))
			}
			r := NewMotionBallotReader(source, BallotFileLimits{})
			got, err := readAll(r)
			var where *ballotFileError
			if !errors.As(err, &where) || !errors.Is(err, c.want) || got != i || where.Ballot != i || where.Offset != int64(offset) {
				t.Fatalf("%s at ballot %d, byte %d: %d ballots read, %v", c.name, i, offset, got, err)
			}
			if _, again := r.Next(); again != err {
				t.Fatalf("%s: goes on after it failed: %v", c.name, again)
			}
		}
		offset += n
	}
}

func TestBundlesAreBounded(t *testing.T) {
	all, bundle := bundleOf(t, 20)
	for _, c := range []struct {
		limits BallotFileLimits
		want   int
	}{
		{BallotFileLimits{Ballots: 19}, 19},
		{BallotFileLimits{Bytes: int64(len(bundle)) - 1}, 19},
		{BallotFileLimits{Bytes: int64(len(all[0].Encode()))}, 1},
	} {
		n, err := readAll(NewMotionBallotReader(bytes.NewReader(bundle), c.limits))
		if n != c.want || !errors.Is(err, ErrBallotFileLimit) {
			t.Errorf("%+v: %d read, %v", c.limits, n, err)
		}
	}
	if n, err := readAll(NewMotionBallotReader(bytes.NewReader(bundle), BallotFileLimits{Ballots: 20, Bytes: int64(len(bundle))})); n != 20 || err != io.EOF {
		t.Errorf("at the limits: %d read, %v", n, err)
	}
	if n, err := readAll(NewMotionBallotReader(stuck{}, BallotFileLimits{})); n != 0 || !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("a reader that gives nothing: %d, %v", n, err)
	}
}

// stuck gives nothing and does not end.
type stuck struct{}

func (stuck) Read([]byte) (int, error) { return 0, nil }

func FuzzMotionBallotReader(f *testing.F) {
	_, bundle := bundleOf(f, 4)
	f.Add(bundle, 3)
	f.Add(bundle[:500], 1)
	f.Fuzz(func(t *testing.T, data []byte, chunk int) {
		r := NewMotionBallotReader(iotest.HalfReader(bytes.NewReader(data)), BallotFileLimits{Ballots: 100})
		var back []byte
		for {
			b, err := r.Next()
			if err == io.EOF {
				if !bytes.Equal(back, data) {
					t.Fatalf("%x was read as %x", data, back)
				}
				return
			}
			if err != nil {
				var where *ballotFileError
				if !errors.As(err, &where) || where.Offset != int64(len(back)) || !bytes.HasPrefix(data, back) {
					t.Fatalf("%v after %x of %x", err, back, data)
				}
				return
			}
			back = append(back, b.Encode()...)
		}
	})
}
