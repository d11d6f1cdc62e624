package p2p

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"testing"
)

// FuzzFrameStream reads a whole stream of frames: frames that are read and written again
// give the same bytes, and reading ends with the stream's end, a cut, or ErrFrame.
func FuzzFrameStream(f *testing.F) {
	f.Add([]byte("\x03abc\x00\x01x"))
	f.Add([]byte("\x80\x80\x80\x80"))
	f.Add([]byte("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"))
	f.Add([]byte("\x81\x00a"))
	f.Add([]byte("\x05ab"))
	f.Fuzz(func(t *testing.T, data []byte) {
		const limit = 1000
		r := bufio.NewReader(bytes.NewReader(data))
		var again bytes.Buffer
		w := bufio.NewWriter(&again)
		for {
			frame, err := readFrame(r, limit)
			if err != nil {
				if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, ErrFrame) {
					t.Fatal(err)
				}
				if err := w.Flush(); err != nil {
					t.Fatal(err)
				}
				if !bytes.HasPrefix(data, again.Bytes()) || err == io.EOF && again.Len() != len(data) {
					t.Fatalf("%x was read as %x", data, again.Bytes())
				}
				return
			}
			if len(frame) > limit {
				t.Fatalf("a frame of %d bytes", len(frame))
			}
			if err := writeFrame(w, frame); err != nil {
				t.Fatal(err)
			}
		}
	})
}
