package policytext

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/aweigh/aweigh/scope"
)

// quotaWord is a word of an author's entry about its quota.
type quotaWord struct {
	name string
	of   func(*scope.Quota) *int64
}

var quotaWords = []quotaWord{
	{"rate", func(q *scope.Quota) *int64 { return &q.Rate }},
	{"bytes", func(q *scope.Quota) *int64 { return &q.Bytes }},
	{"leases", func(q *scope.Quota) *int64 { return &q.Leases }},
	{"motions", func(q *scope.Quota) *int64 { return &q.Motions }},
}

// writeQuota is a quota as readQuota reads it, word by word.
func writeQuota(q scope.Quota) (words []string) {
	for _, w := range quotaWords {
		switch n := *w.of(&q); {
		case n == 0:
		case w.name == "bytes":
			words = append(words, w.name+"="+Size(n))
		default:
			words = append(words, fmt.Sprintf("%s=%d", w.name, n))
		}
	}
	return words
}

// readQuota reads the value of a word; known is false if the word is not about a quota.
func readQuota(q *scope.Quota, word, value string) (known bool, err error) {
	for _, w := range quotaWords {
		if w.name != word {
			continue
		}
		n := w.of(q)
		if *n != 0 {
			return true, errors.New("it stands twice")
		}
		if w.name == "bytes" {
			*n, err = ParseSize(value)
		} else if *n, err = strconv.ParseInt(value, 10, 64); err != nil {
			err = fmt.Errorf("%q is not a number, or too large", value)
		}
		if err == nil && *n < 1 {
			err = errors.New("it is at least 1; leave the word out for no bound")
		}
		return true, err
	}
	return false, nil
}

// Size is a number of bytes in the largest unit that shows it exactly, like 500MiB.
func Size(n int64) string {
	for _, u := range units {
		if n > 0 && n%u.bytes == 0 {
			return fmt.Sprint(n/u.bytes, u.name)
		}
	}
	return fmt.Sprint(n)
}

// ParseSize reads a number of bytes, with or without a unit.
func ParseSize(text string) (int64, error) {
	digits, unit := text, int64(1)
	for _, u := range units {
		if rest, ok := strings.CutSuffix(text, u.name); ok {
			digits, unit = strings.TrimSpace(rest), u.bytes
		}
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n < 0 || n > math.MaxInt64/unit {
		return 0, fmt.Errorf("%q is not a number of bytes, such as 500MiB or 8GiB, or too large", text)
	}
	return n * unit, nil
}
