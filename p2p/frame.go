package p2p

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// ErrFrame is returned for a frame that is too long or whose length is malformed.
var ErrFrame = errors.New("p2p: bad frame")

// allocatedAhead bounds the memory, in bytes, that is allocated for a frame
// before its bytes arrive, from any peer. A longer frame's buffer grows as its
// bytes come in, so that a few bytes from a peer cannot pin megabytes here. The
// limit of a frame's length is Config.MaxFrame.
const allocatedAhead = 64 << 10

// writeFrame writes one frame: its length as a minimal uvarint, then its bytes.
func writeFrame(w *bufio.Writer, frame []byte) error {
	var prefix [binary.MaxVarintLen64]byte
	if _, err := w.Write(prefix[:binary.PutUvarint(prefix[:], uint64(len(frame)))]); err != nil {
		return err
	}
	_, err := w.Write(frame)
	return err
}

// readLength reads a frame's length. It returns io.EOF, bare, only when the
// stream ends between frames.
func readLength(r *bufio.Reader, limit int) (int, error) {
	var n uint64
	for shift := 0; ; shift += 7 {
		b, err := r.ReadByte()
		if err != nil {
			if shift > 0 && err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return 0, err
		}
		n |= uint64(b&0x7f) << shift
		switch {
		case n > uint64(limit):
			return 0, fmt.Errorf("%w: longer than %d bytes", ErrFrame, limit)
		case b == 0 && shift > 0:
			return 0, fmt.Errorf("%w: length not minimal", ErrFrame)
		case b < 0x80:
			return int(n), nil
		case shift >= 56:
			return 0, fmt.Errorf("%w: length too long", ErrFrame)
		}
	}
}

// readBody reads the n bytes of a frame into a new slice.
func readBody(r *bufio.Reader, n int) ([]byte, error) {
	body := make([]byte, min(n, allocatedAhead))
	for got := 0; ; {
		if _, err := io.ReadFull(r, body[got:]); err != nil {
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
		got = len(body)
		if got == n {
			return body, nil
		}
		grown := make([]byte, min(n, 2*got))
		copy(grown, body)
		body = grown
	}
}

// readFrame reads one frame of at most limit bytes.
func readFrame(r *bufio.Reader, limit int) ([]byte, error) {
	n, err := readLength(r, limit)
	if err != nil {
		return nil, err
	}
	return readBody(r, n)
}
