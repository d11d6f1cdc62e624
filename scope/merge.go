package scope

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/aweigh/aweigh"
)

// A merge is a transaction of two operations: an OpMerge, which names an object, and a put, whose value the author made
// from what that object and the one under the key held. Its compares name both versions that the author saw. The chain
// makes no difference of values: it checks these conditions, and records both parents. One is the Prior of the put's
// entry in the lineage, the other is named by the entry's Reason.

// checkMerge reports whether the merge of a transaction at a depth, if it has one, is well-formed.
func (t *Txn) checkMerge(depth int) error {
	merges := func(op Op) bool { return op.Kind == OpMerge }
	if slices.ContainsFunc(t.Failure, merges) {
		return errors.New("a merge where the conditions do not hold")
	}
	if !slices.ContainsFunc(t.Success, merges) {
		return nil
	}
	if depth > 0 || len(t.Success) != 2 || t.Success[0].Kind != OpMerge || t.Success[1].Kind != OpPut || t.Success[1].IgnoreValue {
		return errors.New("a merge with something else than the put of one value after it")
	}
	from, to := t.Success[0].Key, t.Success[1].Key
	if bytes.Equal(from, to) {
		return errors.New("a merge of a key with itself")
	}
	for _, key := range [][]byte{from, to} {
		if !slices.ContainsFunc(t.Compare, func(c Compare) bool { return c.pins(key) }) {
			return fmt.Errorf("a merge without the condition that %q is of the revision that was merged", key)
		}
	}
	return nil
}

// pins reports whether a compare holds for one version of a key alone.
func (c *Compare) pins(key []byte) bool {
	return c.Target == OnMod && c.Relation == Equal && c.Number > 0 && len(c.End) == 0 && bytes.Equal(c.Key, key)
}

// mergeOf has the put that comes next name the object under the key of an OpMerge.
func (x *execution) mergeOf(op *Op, resp *Response) error {
	v, ok, err := x.newest(op.Key)
	if err != nil {
		return err
	}
	if !ok {
		return fmt.Errorf("%w: a merge of %q, which its conditions say is there", ErrCorrupt, op.Key)
	}
	resp.UID = v.UID
	x.merged = Parent{Object: v.UID, Key: v.Key, Revision: v.ModRevision, Sub: v.Sub}.merged()
	return nil
}

// mergedFrom is how the reason of an entry begins that names a parent.
const mergedFrom = "merged "

// merged is the reason of an entry whose value was made from a version too: like "merged UID 12.0 \"/drafts/42\"". The
// key is quoted in ASCII: what else is printable depends on the tables of a release of Go.
func (p Parent) merged() string {
	return fmt.Sprintf("%s%s %d.%d %+q", mergedFrom, p.Object, p.Revision, p.Sub, p.Key)
}

// ParseMerged is the parent that the reason of an entry names; ok is false for other reasons.
func ParseMerged(reason string) (p Parent, ok bool) {
	rest, ok := strings.CutPrefix(reason, mergedFrom)
	parts := strings.SplitN(rest, " ", 3)
	if !ok || len(parts) != 3 {
		return Parent{}, false
	}
	main, sub, _ := strings.Cut(parts[1], ".")
	u, err := aweigh.ParseUID(parts[0])
	revision, mainErr := strconv.ParseInt(main, 10, 64)
	place, subErr := strconv.ParseUint(sub, 10, 32)
	key, keyErr := strconv.Unquote(parts[2])
	if errors.Join(err, mainErr, subErr, keyErr) != nil {
		return Parent{}, false
	}
	return Parent{Object: u, Key: []byte(key), Revision: revision, Sub: uint32(place)}, true
}
