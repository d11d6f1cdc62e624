package lineage

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/aweigh/aweigh"
)

// Checkpoint is a log's head as text that others sign: the form of C2SP's
// tlog-checkpoint, which witnesses of any transparency log can read.
type Checkpoint struct {
	Origin string // names the log; neither empty nor with line ends
	Head   Head
	More   []string // further lines, neither empty nor with line ends
}

// ErrCheckpoint is wrapped by errors about text that is no checkpoint.
var ErrCheckpoint = errors.New("lineage: not a checkpoint")

// Text is the signed text: the body of a note, which ends with a line end.
func (c Checkpoint) Text() string {
	lines := append([]string{c.Origin, strconv.FormatInt(c.Head.Size, 10), base64.StdEncoding.EncodeToString(c.Head.Root[:])}, c.More...)
	return strings.Join(lines, "\n") + "\n"
}

// ParseCheckpoint reads the body of a note. Errors wrap ErrCheckpoint.
func ParseCheckpoint(text string) (c Checkpoint, err error) {
	body, whole := strings.CutSuffix(text, "\n")
	lines := strings.Split(body, "\n")
	if !whole || len(lines) < 3 {
		return c, fmt.Errorf("%w: it has an origin, a size and a root, each on a line", ErrCheckpoint)
	}
	for _, l := range lines {
		if l == "" {
			return c, fmt.Errorf("%w: an empty line", ErrCheckpoint)
		}
	}
	c.Origin, c.More = lines[0], lines[3:]
	if c.Head.Size, err = strconv.ParseInt(lines[1], 10, 64); err != nil || c.Head.Size < 0 || c.Head.Size > MaxSize || strconv.FormatInt(c.Head.Size, 10) != lines[1] {
		return c, fmt.Errorf("%w: %q is no size", ErrCheckpoint, lines[1])
	}
	root, err := base64.StdEncoding.Strict().DecodeString(lines[2])
	if err != nil || len(root) != len(aweigh.Hash{}) {
		return c, fmt.Errorf("%w: %q is no root", ErrCheckpoint, lines[2])
	}
	c.Head.Root = aweigh.Hash(root)
	return c, nil
}
