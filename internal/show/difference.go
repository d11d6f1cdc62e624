package show

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"strings"
	"unicode/utf8"
)

const (
	// contextLines are shown around what differs.
	contextLines = 3
	// mostCompared bounds the lines of each side that are matched with each other; of
	// longer texts all between the first and the last difference is shown.
	mostCompared = 2000
)

// difference is the lines of two contents, nil for none, marked with - and + where
// they differ. Content that is not text is named by its length and hash.
func difference(before, after []byte) (out []string) {
	a, b := contentLines(before), contentLines(after)
	start := 0
	for start < len(a) && start < len(b) && a[start] == b[start] {
		start++
	}
	tail := 0
	for tail < len(a)-start && tail < len(b)-start && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	out = append(out, around(a[:start], false, start == len(a) && start == len(b))...)
	out = append(out, matched(a[start:len(a)-tail], b[start:len(b)-tail])...)
	return append(out, around(a[len(a)-tail:], true, false)...)
}

// around are the equal lines before or after a difference.
func around(lines []string, first, all bool) (out []string) {
	if n := len(lines) - contextLines; n > 0 && !all {
		gap := fmt.Sprintf("  … %d lines as they are", n)
		if n == 1 {
			gap = "  … 1 line as it is"
		}
		if first {
			return append(marked("  ", lines[:contextLines]), gap)
		}
		return append([]string{gap}, marked("  ", lines[n:])...)
	}
	return marked("  ", lines)
}

func marked(mark string, lines []string) []string {
	out := make([]string, len(lines))
	for i, l := range lines {
		out[i] = mark + Line(l)
	}
	return out
}

// matched pairs lines by their longest common subsequence.
func matched(a, b []string) (out []string) {
	if len(a) > mostCompared || len(b) > mostCompared {
		return append(marked("- ", a), marked("+ ", b)...)
	}
	longest := make([][]int32, len(a)+1) // of a[i:] and b[j:]
	for i := range longest {
		longest[i] = make([]int32, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				longest[i][j] = longest[i+1][j+1] + 1
			} else {
				longest[i][j] = max(longest[i+1][j], longest[i][j+1])
			}
		}
	}
	i, j := 0, 0
	for i < len(a) || j < len(b) {
		switch {
		case i < len(a) && j < len(b) && a[i] == b[j]:
			out = append(out, "  "+Line(a[i]))
			i, j = i+1, j+1
		case j == len(b) || i < len(a) && longest[i+1][j] >= longest[i][j+1]:
			out = append(out, "- "+Line(a[i]))
			i++
		default:
			out = append(out, "+ "+Line(b[j]))
			j++
		}
	}
	return out
}

// contentLines is content as lines of text. A missing line break at the end is
// marked, so that no two contents look alike.
func contentLines(content []byte) []string {
	switch {
	case content == nil:
		return nil
	case len(content) == 0:
		return []string{"(empty)"}
	case !utf8.Valid(content) || bytes.IndexByte(content, 0) >= 0:
		return []string{fmt.Sprintf("(%s that are not text, SHA-256 %x)", Count(len(content), "byte"), sha256.Sum256(content))}
	}
	text, ended := strings.CutSuffix(string(content), "\n")
	lines := strings.Split(text, "\n")
	if ended {
		lines = append(lines, "(ends with a line break)")
	}
	return lines
}
