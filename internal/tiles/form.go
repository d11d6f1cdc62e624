package tiles

import (
	"encoding/binary"
	"fmt"
	"strings"

	"golang.org/x/mod/sumdb/tlog"
)

// tilePath is that of a tile with so many hashes.
func tilePath(level int, n int64, hashes int) string {
	return partial(fmt.Sprintf("tile/%d/%s", level, place(n)), hashes)
}

// bundlePath is that of a bundle with so many entries.
func bundlePath(n int64, entries int) string { return partial("tile/entries/"+place(n), entries) }

func partial(name string, of int) string {
	if of < width {
		name += fmt.Sprintf(".p/%d", of)
	}
	return name
}

// place is a number in groups of three digits, all but the last after an x: x001/x234/067.
func place(n int64) string {
	groups := []string{fmt.Sprintf("%03d", n%1000)}
	for n /= 1000; n > 0; n /= 1000 {
		groups = append([]string{fmt.Sprintf("x%03d", n%1000)}, groups...)
	}
	return strings.Join(groups, "/")
}

func joined(hashes []tlog.Hash) []byte {
	out := make([]byte, 0, len(hashes)*tlog.HashSize)
	for i := range hashes {
		out = append(out, hashes[i][:]...)
	}
	return out
}

// entries counts those of a bundle.
func entries(bundle []byte) (n int, err error) {
	for ; len(bundle) > 0; n++ {
		if len(bundle) < 2 || len(bundle)-2 < int(binary.BigEndian.Uint16(bundle)) {
			return n, fmt.Errorf("%w: a bundle that is cut off", ErrDamaged)
		}
		bundle = bundle[2+int(binary.BigEndian.Uint16(bundle)):]
	}
	return n, nil
}
