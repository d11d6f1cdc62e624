package audit

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/aweigh/aweigh"
	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/lineage"
)

// Kinds of lines.
const (
	KindChange = "change"
	KindGap    = "gap"
	KindHead   = "head"
)

// ErrLine is wrapped by errors about a text that is no line of a trail.
var ErrLine = errors.New("audit: not a line of a trail")

// Change is the line of one entry of a lineage. It has all fields of the entry, so that a reader can compute its hash.
// Fields without content are left out.
type Change struct {
	Kind          string  `json:"kind"`
	Next          string  `json:"next"` // with what --since goes on after the line
	Index         int64   `json:"index"`
	Hash          string  `json:"hash"` // of the entry: lineage.Entry.Hash
	Scope         string  `json:"scope"`
	Class         string  `json:"class"`
	Key           *string `json:"key,omitempty"`
	KeyBase64     []byte  `json:"key_base64,omitempty"` // if the key is not UTF-8
	UID           string  `json:"uid,omitempty"`
	Revision      int64   `json:"revision"`
	Time          string  `json:"time"` // of the block
	Height        uint64  `json:"height"`
	Block         string  `json:"block"`
	Place         uint32  `json:"place"` // among the entries of the block
	Author        string  `json:"author,omitempty"`
	AuthorName    string  `json:"author_name,omitempty"` // under the policy and the roster that the line names
	Principal     string  `json:"principal,omitempty"`   // the key whose rights the author used, by a token
	PrincipalName string  `json:"principal_name,omitempty"`
	Caller        string  `json:"caller,omitempty"` // for whom the author acted, as the author states
	Mutation      string  `json:"mutation,omitempty"`
	Justification string  `json:"justification,omitempty"`
	Reason        string  `json:"reason,omitempty"`
	Prior         string  `json:"prior,omitempty"`     // digest of the object before
	Posterior     string  `json:"posterior,omitempty"` // digest of the object after
	Prev          int64   `json:"prev,omitempty"`      // index of the object's entry before, plus one
	Policy        string  `json:"policy"`
	Roster        string  `json:"roster"`
	Final         string  `json:"final,omitempty"` // what makes the block final, on the first line of each block
}

// Lines are the lines of a page of a lineage, of the keys that begin with a prefix.
func Lines(items []*aweighv1.TailItem, prefix []byte) ([]any, error) {
	lines := make([]any, 0, len(items))
	for _, x := range items {
		if len(x.Entry) == 0 {
			g := gap{Kind: KindGap, Next: since(x.To), From: x.Index, To: x.To, Hashes: []string{}}
			g.Prefix, g.PrefixBase64 = keyField(prefix)
			for _, h := range x.Hashes {
				g.Hashes = append(g.Hashes, hex.EncodeToString(h))
			}
			lines = append(lines, &g)
			continue
		}
		e, err := lineage.DecodeEntry(x.Entry)
		if err != nil {
			return nil, err
		}
		c := changeOf(&e, x.Index)
		c.Block, c.Time = hex.EncodeToString(x.Block), instant(aweigh.Instant(x.TimeNs))
		c.AuthorName, c.PrincipalName = x.AuthorName, x.PrincipalName
		c.Final = base64.StdEncoding.EncodeToString(x.Finality)
		lines = append(lines, c)
	}
	return lines, nil
}

// changeOf is the line of an entry, without what the entry does not hold.
func changeOf(e *lineage.Entry, index int64) *Change {
	c := &Change{
		Kind: KindChange, Next: since(index + 1), Index: index, Hash: e.Hash().String(), Scope: e.Scope.String(),
		Class:    e.Class.String(),
		Revision: e.Revision, Height: uint64(e.Height), Place: e.Index, Author: digest(e.Author), Caller: e.Caller,
		Mutation: digest(e.Mutation), Justification: e.Justification, Reason: e.Reason, Prior: digest(e.Prior),
		Posterior: digest(e.Posterior), Prev: e.Prev, Policy: e.Policy.String(), Roster: e.Roster.String(),
	}
	if !e.Object.IsZero() {
		c.UID = e.Object.String()
	}
	if len(e.Principal) > 0 {
		c.Principal = digest(e.Acts())
	}
	c.Key, c.KeyBase64 = keyField(e.Key)
	return c
}

// entry is the entry that a line describes.
func (c *Change) entry() (e lineage.Entry, err error) {
	class, ok := lineage.ParseClass(c.Class)
	if !ok {
		return e, fmt.Errorf("%w: class %q", ErrLine, c.Class)
	}
	e = lineage.Entry{
		Class: class, Height: aweigh.Height(c.Height), Index: c.Place, Key: c.key(), Prev: c.Prev, Revision: c.Revision,
		Justification: c.Justification, Caller: c.Caller, Reason: c.Reason,
	}
	var principal aweigh.Hash
	for _, f := range []struct {
		into *aweigh.Hash
		text string
	}{
		{&principal, c.Principal},
		{&e.Scope, c.Scope}, {&e.Author, c.Author}, {&e.Mutation, c.Mutation}, {&e.Prior, c.Prior},
		{&e.Posterior, c.Posterior}, {&e.Policy, c.Policy}, {&e.Roster, c.Roster},
	} {
		if f.text == "" {
			continue
		}
		if *f.into, err = aweigh.ParseHash(f.text); err != nil {
			return e, fmt.Errorf("%w: %w", ErrLine, err)
		}
	}
	if c.Principal != "" {
		e.Principal = principal[:]
	}
	if c.UID != "" {
		if e.Object, err = aweigh.ParseUID(c.UID); err != nil {
			return e, fmt.Errorf("%w: %w", ErrLine, err)
		}
	}
	return e, nil
}

func (c *Change) key() []byte { return fieldKey(c.Key, c.KeyBase64) }

// fieldKey is the key of keyField.
func fieldKey(text *string, raw []byte) []byte {
	if text != nil {
		return []byte(*text)
	}
	return raw
}

func keyField(key []byte) (text *string, raw []byte) {
	if len(key) == 0 {
		return nil, nil
	}
	if utf8.Valid(key) {
		s := string(key)
		return &s, nil
	}
	return nil, key
}

// digest is a hash as text, "" for none.
func digest(h aweigh.Hash) string {
	if h.IsZero() {
		return ""
	}
	return h.String()
}

// timeForm is that of times, in UTC: RFC 3339 with all digits of the nanoseconds.
const timeForm = "2006-01-02T15:04:05.000000000Z"

func instant(t aweigh.Instant) string { return t.Time().UTC().Format(timeForm) }

// since is how --since names an entry.
func since(index int64) string { return "@" + strconv.FormatInt(index, 10) }

// ParseSince reads the text of --since: a revision, or @ and the index of an entry.
func ParseSince(text string) (revision, index int64, err error) {
	digits, indexed := strings.CutPrefix(text, "@")
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n < 0 {
		return 0, 0, fmt.Errorf("%q is neither a revision nor @ and the index of an entry, such as the \"next\" of a line", text)
	}
	if indexed {
		return 0, n, nil
	}
	return n, 0, nil
}

// Encode is the one form of a line, with its line break.
func Encode(line any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(line); err != nil {
		return nil, fmt.Errorf("audit: %w", err)
	}
	return b.Bytes(), nil
}

// decode reads a line. The error wraps ErrLine if it is not in its one form.
func decode(raw []byte, into any) error {
	if err := json.Unmarshal(raw, into); err != nil {
		return fmt.Errorf("%w: %w", ErrLine, err)
	}
	again, err := Encode(into)
	if err != nil {
		return err
	}
	if !bytes.Equal(again, raw) {
		return fmt.Errorf("%w: it is not written as \"aweigh audit tail\" writes it", ErrLine)
	}
	return nil
}

// parseTime reads what instant wrote.
func parseTime(text string) (aweigh.Instant, error) {
	t, err := time.Parse(timeForm, text)
	if err != nil {
		return 0, fmt.Errorf("%w: %w", ErrLine, err)
	}
	return aweigh.Instant(t.UnixNano()), nil
}
