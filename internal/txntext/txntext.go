// Package txntext reads transactions as people write them.
package txntext

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/aweigh/aweigh/alias"
	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/kv"
)

// Help is the language.
const Help = `A transaction is lines of words. A word with spaces stands in double quotes, as
in Go; # starts a comment. Three sections, each optional, in this order:

  if                        all of these must hold:
    version KEY = NUMBER      how often the key was set since it was created; 0: absent
    create KEY = NUMBER       revision in which it was created
    mod KEY = NUMBER          revision in which it was last changed
    value KEY = VALUE         (also != < > in each)
  then                      if so, in order:
    put KEY VALUE
    get KEY [prefix]
    del KEY [prefix]
  else                      otherwise, likewise
`

// ErrSyntax is wrapped by errors about text that is no transaction.
var ErrSyntax = errors.New("txntext: not a transaction")

// maxBytes bounds the text.
const maxBytes = 4 << 20

// Parse reads a transaction. Errors wrap ErrSyntax and name the line.
func Parse(r io.Reader) (*aweighv1.TxnRequest, error) {
	req := new(aweighv1.TxnRequest)
	all := &io.LimitedReader{R: r, N: maxBytes + 1}
	lines := bufio.NewScanner(all)
	lines.Buffer(nil, maxBytes)
	section, at := 0, 0 // sections: 1 if, 2 then, 3 else
	for lines.Scan() {
		at++
		words, err := split(lines.Text())
		if err != nil {
			return nil, fmt.Errorf("%w: line %d: %w", ErrSyntax, at, err)
		}
		if len(words) == 0 {
			continue
		}
		if next := sectionOf(words); next > 0 {
			if next <= section {
				return nil, fmt.Errorf("%w: line %d: %q stands twice or too late", ErrSyntax, at, words[0].text)
			}
			section = next
			continue
		}
		if err := add(req, section, words); err != nil {
			return nil, fmt.Errorf("%w: line %d: %w", ErrSyntax, at, err)
		}
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		return nil, fmt.Errorf("%w: line %d has %d bytes or more", ErrSyntax, at+1, maxBytes)
	} else if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSyntax, err)
	}
	if all.N == 0 {
		return nil, fmt.Errorf("%w: it has more than %d bytes", ErrSyntax, maxBytes)
	}
	return req, nil
}

func sectionOf(words []word) int {
	if len(words) != 1 {
		return 0
	}
	switch words[0].text {
	case "if":
		return 1
	case "then":
		return 2
	case "else":
		return 3
	}
	return 0
}

func add(req *aweighv1.TxnRequest, section int, words []word) error {
	switch section {
	case 0:
		return fmt.Errorf("%q comes before if, then or else", words[0].text)
	case 1:
		c, err := compare(words)
		req.Compare = append(req.Compare, c)
		return err
	}
	o, err := op(words)
	if section == 2 {
		req.Success = append(req.Success, o)
	} else {
		req.Failure = append(req.Failure, o)
	}
	return err
}

var targets = map[string]aweighv1.Compare_Target{
	"version": aweighv1.Compare_TARGET_VERSION, "create": aweighv1.Compare_TARGET_CREATE,
	"mod": aweighv1.Compare_TARGET_MOD, "value": aweighv1.Compare_TARGET_VALUE,
}

var relations = map[string]aweighv1.Compare_Relation{
	"=": aweighv1.Compare_RELATION_EQUAL, "!=": aweighv1.Compare_RELATION_NOT_EQUAL,
	"<": aweighv1.Compare_RELATION_LESS, ">": aweighv1.Compare_RELATION_GREATER,
}

func compare(words []word) (*aweighv1.Compare, error) {
	if len(words) != 4 {
		return nil, fmt.Errorf("a condition has four words, like: version /key = 0")
	}
	target, ok := targets[words[0].text]
	if !ok {
		return nil, fmt.Errorf("%q is none of version, create, mod and value", words[0].text)
	}
	relation, ok := relations[words[2].text]
	if !ok {
		return nil, fmt.Errorf("%q is none of = != < >", words[2].text)
	}
	key, err := keyOf(words[1])
	if err != nil {
		return nil, err
	}
	c := &aweighv1.Compare{Target: target, Relation: relation, Key: key}
	if target == aweighv1.Compare_TARGET_VALUE {
		c.Value = []byte(words[3].text)
		return c, nil
	}
	if c.Number, err = strconv.ParseInt(words[3].text, 10, 64); err != nil {
		return nil, fmt.Errorf("%q is not a number", words[3].text)
	}
	return c, nil
}

func op(words []word) (*aweighv1.Op, error) {
	if !slices.Contains([]string{"put", "get", "del"}, words[0].text) {
		return nil, fmt.Errorf("%q is none of put, get and del", words[0].text)
	}
	if len(words) < 2 {
		return nil, fmt.Errorf("an operation is put KEY VALUE, get KEY or del KEY")
	}
	key, err := keyOf(words[1])
	if err != nil {
		return nil, err
	}
	if words[0].text == "put" {
		if len(words) != 3 {
			return nil, fmt.Errorf("put takes a key and a value")
		}
		return &aweighv1.Op{Op: &aweighv1.Op_Put{Put: &aweighv1.PutRequest{Key: key, Value: []byte(words[2].text)}}}, nil
	}
	var end []byte
	switch {
	case len(words) == 2:
	case len(words) == 3 && words[2].text == "prefix":
		if end = kv.PrefixEnd(key); end == nil {
			end = []byte{0}
		}
	default:
		return nil, fmt.Errorf("after the key comes nothing, or prefix")
	}
	if words[0].text == "get" {
		return &aweighv1.Op{Op: &aweighv1.Op_Range{Range: &aweighv1.RangeRequest{Key: key, RangeEnd: end}}}, nil
	}
	return &aweighv1.Op{Op: &aweighv1.Op_Delete{Delete: &aweighv1.DeleteRequest{Key: key, RangeEnd: end}}}, nil
}

// word is one word of a line.
type word struct {
	text   string
	quoted bool
}

// keyOf reads a name; a word in quotes is taken as it is.
func keyOf(w word) ([]byte, error) {
	if w.quoted {
		n, err := alias.FromKey([]byte(w.text))
		return n.Key(), err
	}
	n, err := alias.Parse(w.text)
	if err == nil && (n.Action() != "" || n.Version() != 0) {
		return nil, fmt.Errorf("%q: a key has no action and no version here", w.text)
	}
	return n.Key(), err
}

// split cuts a line into words.
func split(line string) (words []word, err error) {
	for {
		line = strings.TrimLeft(line, " \t\r")
		if line == "" || line[0] == '#' {
			return words, nil
		}
		if line[0] != '"' {
			end := strings.IndexAny(line, " \t\r")
			if end < 0 {
				end = len(line)
			}
			words, line = append(words, word{text: line[:end]}), line[end:]
			continue
		}
		prefix, err := strconv.QuotedPrefix(line)
		if err != nil {
			return nil, fmt.Errorf("a quote is not closed, or its content is wrong")
		}
		text, err := strconv.Unquote(prefix)
		if err != nil {
			return nil, err
		}
		words, line = append(words, word{text, true}), line[len(prefix):]
	}
}
