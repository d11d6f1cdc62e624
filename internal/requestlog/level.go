package requestlog

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Level states which requests for some keys are recorded.
type Level uint8

// The levels.
const (
	None     Level = iota // none
	Metadata              // those that were refused
	Request               // also reads, with their ranges
)

var levels = [...]string{None: "none", Metadata: "metadata", Request: "request"}

// ErrLevel is wrapped by errors about the text of a rule.
var ErrLevel = errors.New("it is PREFIX=LEVEL, and the level is none, metadata or request")

// Rule is the level of the keys that begin with a prefix, unless a longer prefix has another.
type Rule struct {
	Prefix string
	Level  Level
}

// ParseRules reads rules, PREFIX=LEVEL. Without a rule for them, keys have the level Metadata. Errors wrap ErrLevel.
func ParseRules(texts []string) (rules []Rule, err error) {
	for _, text := range texts {
		at := strings.LastIndexByte(text, '=')
		if at < 0 {
			return nil, fmt.Errorf("%w, not %q", ErrLevel, text)
		}
		level := slices.Index(levels[:], text[at+1:])
		if level < 0 {
			return nil, fmt.Errorf("%w, not %q", ErrLevel, text)
		}
		r := Rule{text[:at], Level(level)}
		if slices.ContainsFunc(rules, func(x Rule) bool { return x.Prefix == r.Prefix }) {
			return nil, fmt.Errorf("%w: %q has several levels", ErrLevel, r.Prefix)
		}
		rules = append(rules, r)
	}
	return rules, nil
}

// levelOf is the highest level of any of the keys, and that of the empty prefix where there are none. A request that
// names as many ranges as a line holds may name others, and one that reads and names none may read any: they count as
// requests for all keys.
func levelOf(rules []Rule, keys []Keys, reads bool) (most Level) {
	switch {
	case len(keys) == maxKeys, len(keys) == 0 && reads:
		keys = []Keys{{Key: []byte{0}, End: []byte{0}}}
	case len(keys) == 0:
		keys = []Keys{{}}
	}
	for i := range keys {
		k := &keys[i]
		at, longest := Metadata, -1
		for _, r := range rules {
			if bytes.HasPrefix(k.Key, []byte(r.Prefix)) && len(r.Prefix) > longest {
				at, longest = r.Level, len(r.Prefix)
			}
			if k.holds(r.Prefix) {
				most = max(most, r.Level)
			}
		}
		most = max(most, at)
	}
	return most
}

// Keys is a range of keys, as requests name it: one key without an end, and all from Key on if End is the byte 0.
type Keys struct{ Key, End []byte }

// holds reports whether a range of several keys holds keys that begin with a prefix, and others.
func (k *Keys) holds(prefix string) bool {
	return len(k.End) > 0 && string(k.Key) < prefix && (bytes.Equal(k.End, []byte{0}) || prefix < string(k.End))
}
