// Package plain knows which text looks like what it is. The list of characters that do not show is fixed here and not
// taken from the tables of a version of Go, because all nodes must refuse the same names.
package plain

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// hidden are ranges of characters that a screen shows as nothing, as a blank, or as a change of the characters around
// them: of Unicode 15 those of the categories Cc, Cf, Co, Cs, Zl, Zp and Zs, except for the space, those of the
// property Default_Ignorable_Code_Point, and letters and symbols that are blank. They are in order.
var hidden = [...]struct{ first, last rune }{
	{0x0000, 0x001f}, {0x007f, 0x00a0}, {0x00ad, 0x00ad}, {0x034f, 0x034f}, {0x0600, 0x0605}, {0x061c, 0x061c},
	{0x06dd, 0x06dd}, {0x070f, 0x070f}, {0x0890, 0x0891}, {0x08e2, 0x08e2}, {0x115f, 0x1160}, {0x1680, 0x1680},
	{0x17b4, 0x17b5}, {0x180b, 0x180f}, {0x2000, 0x200f}, {0x2028, 0x202f}, {0x205f, 0x206f}, {0x2800, 0x2800},
	{0x3000, 0x3000}, {0x3164, 0x3164}, {0xd800, 0xf8ff}, {0xfdd0, 0xfdef}, {0xfe00, 0xfe0f}, {0xfeff, 0xfeff},
	{0xffa0, 0xffa0}, {0xfff0, 0xfffc}, {0xfffe, 0xffff}, {0x110bd, 0x110bd}, {0x110cd, 0x110cd}, {0x13430, 0x13442},
	{0x16fe4, 0x16fe4}, {0x1bca0, 0x1bca3}, {0x1d159, 0x1d159}, {0x1d173, 0x1d17a}, {0xe0000, 0xe0fff},
	{0xf0000, utf8.MaxRune},
}

// Hidden reports whether a character is one of the fixed list.
func Hidden(r rune) bool {
	_, found := slices.BinarySearchFunc(hidden[:], r, func(x struct{ first, last rune }, r rune) int {
		if x.last < r {
			return -1
		}
		return max(0, cmp.Compare(x.first, r))
	})
	return found || r < 0 || r > utf8.MaxRune || r&0xfffe == 0xfffe
}

// Prints reports whether a character shows as itself. It may depend on the version of Go, so nodes do not decide by it.
func Prints(r rune) bool { return unicode.IsPrint(r) && !Hidden(r) }

// Text reports whether a text is UTF-8, and all of its characters print.
func Text(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return !Prints(r) })
}

// Name reports why a text is no name: all of a name shows. The empty text passes.
func Name(s string) error {
	switch at := strings.IndexFunc(s, Hidden); {
	case !utf8.ValidString(s):
		return fmt.Errorf("the name %s is not UTF-8", Quote(s))
	case at >= 0:
		return fmt.Errorf("the name %s has a character that does not show", Quote(s))
	case strings.Trim(s, " ") != s:
		return fmt.Errorf("the name %q begins or ends with a space", s)
	}
	return nil
}

// Quote is strconv.Quote with all characters escaped that do not print. strconv.Unquote reads it.
func Quote(s string) string {
	quoted := strconv.Quote(s)
	if !strings.ContainsFunc(quoted, Hidden) {
		return quoted
	}
	var b strings.Builder
	for _, r := range quoted {
		switch {
		case !Hidden(r):
			b.WriteRune(r)
		case r > 0xffff:
			fmt.Fprintf(&b, `\U%08x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}
