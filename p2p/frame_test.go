package p2p

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"runtime"
	"testing"

	"pgregory.net/rapid"
)

func TestFrameRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		frames := rapid.SliceOf(rapid.SliceOfN(rapid.Byte(), 0, 300)).Draw(t, "frames")
		if rapid.Bool().Draw(t, "long") {
			frames = append(frames, bytes.Repeat([]byte{7}, rapid.IntRange(allocatedAhead-1, 5*allocatedAhead).Draw(t, "length")))
		}
		var stream bytes.Buffer
		w := bufio.NewWriter(&stream)
		for _, f := range frames {
			if err := writeFrame(w, f); err != nil {
				t.Fatal(err)
			}
		}
		w.Flush()
		r := bufio.NewReader(&stream)
		for i, f := range frames {
			got, err := readFrame(r, 5*allocatedAhead)
			if err != nil || !bytes.Equal(got, f) {
				t.Fatalf("frame %d: %v", i, err)
			}
		}
		if _, err := readFrame(r, 1); err != io.EOF {
			t.Fatalf("the end is %v", err)
		}
	})
}

func TestBadFramesAreRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, stream string
		want         error
	}{
		{"too long", "\x65", ErrFrame},
		{"far too long", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", ErrFrame},
		{"zeros without end", "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80", ErrFrame},
		{"length not minimal", "\x81\x00x", ErrFrame},
		{"cut in the length", "\x81", io.ErrUnexpectedEOF},
		{"cut after the length", "\x05", io.ErrUnexpectedEOF},
		{"cut in the body", "\x05abc", io.ErrUnexpectedEOF},
		{"nothing", "", io.EOF},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := readFrame(bufio.NewReader(bytes.NewBufferString(c.stream)), 100); !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
		})
	}
}

// TestClaimedLengthPinsNoMemory is the reason for allocatedAhead. It counts what the whole process allocates, so no
// test may run beside it.
func TestClaimedLengthPinsNoMemory(t *testing.T) {
	const limit = 8 << 20
	claim := []byte{0x80, 0x80, 0x80, 0x04} // 8 MiB, of which no byte follows
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	const rounds = 100
	for range rounds {
		if _, err := readFrame(bufio.NewReader(bytes.NewReader(claim)), limit); err != io.ErrUnexpectedEOF {
			t.Fatal(err)
		}
	}
	runtime.ReadMemStats(&after)
	if each := (after.TotalAlloc - before.TotalAlloc) / rounds; each > 2*allocatedAhead {
		t.Errorf("%d bytes for a frame that never came", each)
	}
}

func FuzzReadFrame(f *testing.F) {
	f.Add([]byte("\x03abc\x00\x01x"))
	f.Add([]byte("\xff\xff\x03"))
	f.Add([]byte("\x80\x00"))
	f.Fuzz(func(t *testing.T, stream []byte) {
		r := bufio.NewReader(bytes.NewReader(stream))
		var again bytes.Buffer
		w := bufio.NewWriter(&again)
		for {
			frame, err := readFrame(r, 1000)
			if err != nil {
				break
			}
			if len(frame) > 1000 {
				t.Fatal("a frame above the limit")
			}
			writeFrame(w, frame)
		}
		w.Flush()
		if !bytes.HasPrefix(stream, again.Bytes()) {
			t.Error("frames have two encodings")
		}
	})
}

func FuzzUnpackGossip(f *testing.F) {
	f.Add([]byte("\x00\x01xdata"))
	f.Add([]byte("\xff\xff"))
	f.Fuzz(func(t *testing.T, message []byte) {
		topic, data, err := unpackGossip(message)
		if err != nil {
			return
		}
		again, err := packGossip(topic, data)
		if err != nil || !bytes.Equal(again, message) {
			t.Errorf("%q was accepted, but packs as %q: %v", message, again, err)
		}
	})
}
