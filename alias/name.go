package alias

import (
	"strconv"
	"strings"

	"github.com/aweigh/aweigh/internal/plain"
)

const (
	// MaxKey bounds a key, in bytes.
	MaxKey = 1024
	// MaxSegments bounds the segments of an alias. Raw keys have none.
	MaxSegments = 64
	// MaxAction bounds an action, in bytes.
	MaxAction = 64
)

// Name is a key, with the action and the version that were asked for and the
// form it was written in. Only Parse and FromKey make one that is not zero.
// Names are comparable: == means the same text; to ask for the same key,
// compare Key.
type Name struct {
	action  string
	key     string
	version uint64
	host    int // segments written before the first slash, TYPE included; 0 for a raw key
}

// FromKey is the name of a raw key, of 1 to MaxKey bytes of any value.
func FromKey(key []byte) (Name, error) {
	if reason := checkKey(string(key)); reason != "" {
		return Name{}, &SyntaxError{Offset: min(len(key), MaxKey), Input: string(key), Reason: reason}
	}
	return Name{key: string(key)}, nil
}

func checkKey(key string) (reason string) {
	switch {
	case key == "":
		return "an empty key"
	case len(key) > MaxKey:
		return "a key of more than " + strconv.Itoa(MaxKey) + " bytes"
	}
	return ""
}

// IsZero reports whether n is the zero Name, "none".
func (n Name) IsZero() bool { return n == Name{} }

// Action is the verb before the name, empty if there is none.
func (n Name) Action() string { return n.action }

// Version is the version asked for, 0 for the newest.
func (n Name) Version() uint64 { return n.version }

// Raw reports whether the name is a raw key, and not an alias.
func (n Name) Raw() bool { return n.host == 0 }

// Key is the key, in a slice of the caller's own. It is nil for the zero Name.
func (n Name) Key() []byte {
	if n.key == "" {
		return nil
	}
	return []byte(n.key)
}

// String is the one text that stands for n: Parse gives n back. Raw keys are
// quoted unless they start with a slash, end in no space and show as they are.
func (n Name) String() string {
	if n.IsZero() {
		return ""
	}
	var b strings.Builder
	if n.action != "" {
		b.WriteString(n.action)
		b.WriteByte(' ')
	}
	if n.Raw() {
		if n.key[0] == '/' && plain.Text(n.key) && !strings.HasSuffix(n.key, " ") {
			b.WriteString(n.key)
		} else {
			b.WriteString(plain.Quote(n.key))
		}
		return b.String()
	}
	for i, segment := range strings.Split(n.key[1:], "/") {
		switch {
		case i == 0:
		case i == 1:
			b.WriteByte('@')
		case i < n.host:
			b.WriteByte('.')
		default:
			b.WriteByte('/')
		}
		b.WriteString(segment)
	}
	if n.version > 0 {
		b.WriteString(".v")
		b.WriteString(strconv.FormatUint(n.version, 10))
	}
	return b.String()
}
