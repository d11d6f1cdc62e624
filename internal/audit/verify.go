package audit

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/lineage"
	"github.com/aweigh/aweigh/scope"
)

// ErrTrail is wrapped by errors about a trail that does not hold.
var ErrTrail = errors.New("the trail does not hold")

// Options state what a reader knows besides a trail.
type Options struct {
	Network *aweigh.NetworkID           // that the trail must be of; nil: the one that it names
	Trust   func(*scope.Ancestry) error // looks at the chain of rosters; nil: any that is of the network will do
	Note    *lineage.Checkpoint         // from elsewhere; nil: none
	// NoteSigned reports whether anchors of the epochs signed Note.
	NoteSigned func(epochs []*scope.Epoch) error
	// BareTimes accepts lines whose block and time nothing proves, as those of a node that dropped its blocks.
	BareTimes bool
	// Prefix is that of the keys that the trail must be about. Empty: all keys, so that no entry may be hidden between
	// the first line and the last.
	Prefix []byte
}

// Report states what a verified trail shows.
type Report struct {
	Genesis     scope.Genesis
	First, Next int64  // the entries that it shows or hides, without those before its first line
	Changes     int64  // lines of entries
	Hidden      int64  // entries that it does not show, whatever their keys are
	Prefix      []byte // of the keys of those that it shows: Options.Prefix
	Bare        int64  // lines whose block and time nothing proves
	Heads       int64
	Head        scope.Finality // of the block that names the newest head
	Epoch       *scope.Epoch   // of that block
	Noted       bool           // Options.Note is a state of this lineage
}

// Verify verifies a trail: each line has the hash of its entry, no line was changed, added, removed or moved between
// the first and the last, and a final head holds them all. With Options.Prefix, hashes may take the place of lines, and
// nothing proves which entries these are. Errors wrap ErrTrail and name the line, or are those of the file.
func Verify(file io.ReadSeeker, o Options) (*Report, error) {
	epochs, err := rulers(file, &o)
	if err != nil {
		return nil, err
	}
	if o.Note != nil {
		if err := o.NoteSigned(epochs); err != nil {
			return nil, fmt.Errorf("%w: the checkpoint: %w", ErrTrail, err)
		}
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	v := verifier{o: &o, epochs: epochs, names: make(map[scope.Ruled]map[aweigh.Hash]string), report: Report{First: -1}}
	if err := v.learn(); err != nil {
		return nil, err
	}
	if err := eachLine(file, v.line); err != nil {
		return nil, err
	}
	return v.end()
}

// maxLine bounds a line: the ancestry of a head, as base64, and some room.
const maxLine = scope.MaxProofBytes*4/3 + 1<<20

// eachLine calls each for every line, with its number from 1 on.
func eachLine(file io.Reader, each func(raw []byte) error) error {
	r := bufio.NewReaderSize(file, 1<<16)
	var long []byte
	for n := 1; ; {
		part, err := r.ReadSlice('\n')
		long = append(long, part...)
		switch {
		case errors.Is(err, bufio.ErrBufferFull) && len(long) <= maxLine:
			continue
		case errors.Is(err, bufio.ErrBufferFull):
			err = fmt.Errorf("%w: it is longer than %d bytes", ErrLine, maxLine)
		case errors.Is(err, io.EOF) && len(long) == 0:
			return nil
		case errors.Is(err, io.EOF):
			err = fmt.Errorf("%w: it is cut off", ErrLine)
		case err == nil:
			err = each(long)
		default:
			return err
		}
		if err != nil {
			return fmt.Errorf("%w: line %d: %w", ErrTrail, n, err)
		}
		n, long = n+1, long[:0]
	}
}

// kindOf is the kind of a line.
func kindOf(raw []byte) (string, error) {
	var line struct {
		Kind string `json:"kind"`
	}
	if err := json.Unmarshal(raw, &line); err != nil {
		return "", fmt.Errorf("%w: %w", ErrLine, err)
	}
	return line.Kind, nil
}

// rulers are the epochs of the newest head.
func rulers(file io.Reader, o *Options) (epochs []*scope.Epoch, err error) {
	n, at := 0, 0
	var last []byte
	err = eachLine(file, func(raw []byte) error {
		n++
		kind, err := kindOf(raw)
		if err == nil && kind == KindHead {
			last, at = bytes.Clone(raw), n
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if last == nil {
		return nil, fmt.Errorf("%w: it has no head, which proves the lines before it: "+
			"\"aweigh audit tail --since\" with the \"next\" of "+
			"its last line writes what is missing, to be appended", ErrTrail)
	}
	var head Head
	if err = decode(last, &head); err == nil {
		_, epochs, err = head.read(o.Network, o.Trust)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: line %d: %w", ErrTrail, at, err)
	}
	return epochs, nil
}

// verifier goes through a trail.
type verifier struct {
	o      *Options
	epochs []*scope.Epoch
	names  map[scope.Ruled]map[aweigh.Hash]string
	report Report

	n       int // of the line
	tree    lineage.Tree
	good    int   // the last line up to which the tree is known to be the lineage's
	covered int64 // entries that are known to be
	block   *scope.Header
	mention bool // the tree was at the size of the note
}

// learn reads the names of all authors.
func (v *verifier) learn() error {
	for _, e := range v.epochs {
		terms := e.Terms()
		under, err := terms.Ruled()
		if err != nil {
			return fmt.Errorf("%w: %w", ErrTrail, err)
		}
		if v.names[under] == nil {
			v.names[under] = terms.AuthorNames()
		}
	}
	return nil
}

func (v *verifier) line(raw []byte) error {
	v.n++
	kind, err := kindOf(raw)
	if err != nil {
		return err
	}
	switch kind {
	case KindChange:
		var c Change
		if err = decode(raw, &c); err == nil {
			err = v.change(&c)
		}
	case KindGap:
		var g gap
		if err = decode(raw, &g); err == nil {
			err = v.gap(&g)
		}
	case KindHead:
		var h Head
		if err = decode(raw, &h); err == nil {
			err = v.head(&h)
		}
	default:
		err = fmt.Errorf("%w: kind %q", ErrLine, kind)
	}
	if err != nil {
		return err
	}
	return v.noted()
}

// noted compares the tree with the note, once it is at its size.
func (v *verifier) noted() error {
	note := v.o.Note
	if note == nil || v.tree.Size() != note.Head.Size {
		return nil
	}
	if v.tree.Head() != note.Head {
		return fmt.Errorf("%w: the checkpoint has another root for %d entries: the lines up to here are not of its history",
			lineage.ErrProof, note.Head.Size)
	}
	v.mention, v.covered = true, max(v.covered, note.Head.Size)
	return nil
}

func (v *verifier) change(c *Change) error {
	e, err := c.entry()
	if err != nil {
		return err
	}
	g := &v.epochs[0].Scope
	switch hash := e.Hash(); {
	case c.Hash != hash.String():
		return fmt.Errorf("the entry that it describes has the hash %s, and not the one that it states: it was changed",
			hash)
	case e.Scope != *g:
		return fmt.Errorf("it is of scope %s, and the head of %s", e.Scope, *g)
	case c.Index < v.tree.Size():
		return fmt.Errorf("it is entry %d, and the line before is entry %d: it was added or moved", c.Index,
			v.tree.Size()-1)
	case c.Index > v.tree.Size():
		return fmt.Errorf("it is entry %d, and the entries from %d on are missing: lines were removed or moved",
			c.Index, v.tree.Size())
	}
	if !bytes.HasPrefix(e.Key, v.o.Prefix) {
		return fmt.Errorf("its key %q does not begin with %q", e.Key, v.o.Prefix)
	}
	if err := c.is(&e); err != nil {
		return err
	}
	names := v.names[scope.Ruled{Policy: e.Policy, Roster: e.Roster}]
	if name := names[e.Author]; c.AuthorName != name {
		return fmt.Errorf("its author was called %q under the policy and the roster that it names, and not %q", name,
			c.AuthorName)
	}
	principal := ""
	if len(e.Principal) > 0 {
		principal = names[e.Acts()]
	}
	if c.PrincipalName != principal {
		return fmt.Errorf("its principal was called %q under the policy and the roster that it names, and not %q",
			principal, c.PrincipalName)
	}
	if err := v.dated(c, &e); err != nil {
		return err
	}
	if v.report.First < 0 {
		v.report.First = c.Index
	}
	v.report.Changes++
	return v.tree.Add(e.Hash())
}

// is reports whether a line has the form of the line of an entry.
func (c *Change) is(e *lineage.Entry) error {
	want := changeOf(e, c.Index)
	want.Block, want.Time, want.AuthorName, want.Final = c.Block, c.Time, c.AuthorName, c.Final
	want.PrincipalName = c.PrincipalName
	again, err := Encode(want)
	if err != nil {
		return err
	}
	if given, err := Encode(c); err != nil || !bytes.Equal(again, given) {
		return errors.Join(err, fmt.Errorf("%w: it has parts that the line of its entry has not", ErrLine))
	}
	return nil
}

// dated verifies the block and the time of a line.
func (v *verifier) dated(c *Change, e *lineage.Entry) error {
	at, err := parseTime(c.Time)
	if err != nil {
		return err
	}
	if e.Height == 0 { // taken over, as the scope was founded
		if c.Block != v.epochs[0].Scope.String() || at != v.epochs[0].Time || c.Final != "" {
			return fmt.Errorf("the scope was founded with it, at %s", instant(v.epochs[0].Time))
		}
		return nil
	}
	if c.Final != "" {
		if err := v.final(c); err != nil {
			return err
		}
	}
	if v.block == nil || v.block.Height != e.Height {
		if !v.o.BareTimes {
			return errors.New("nothing proves its block and time: the node had dropped the block, or a line was changed; " +
				"write the trail at a node without --prune, or accept such lines with --bare-times")
		}
		v.block, v.report.Bare = nil, v.report.Bare+1
		return nil
	}
	h := v.block
	switch {
	case c.Block != h.Hash().String() || at != h.Time:
		return fmt.Errorf("block %d is %s, of %s", h.Height, h.Hash(), instant(h.Time))
	case h.LineageSize+int64(e.Index) != c.Index:
		return fmt.Errorf("block %d begins with entry %d", h.Height, h.LineageSize)
	}
	return nil
}

// final verifies what makes the block of a line final. The block names the lineage before it, which the lines before
// must have.
func (v *verifier) final(c *Change) error {
	raw, err := base64.StdEncoding.Strict().DecodeString(c.Final)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrLine, err)
	}
	var f scope.Finality
	if err := canon.Decode(raw, &f); err != nil {
		return err
	}
	h := &f.Header
	if uint64(h.Epoch) >= uint64(len(v.epochs)) {
		return fmt.Errorf("block %d is of epoch %d, and the newest head of epoch %d", h.Height, h.Epoch,
			len(v.epochs)-1)
	}
	if err := f.CheckIn(v.epochs[h.Epoch]); err != nil {
		return err
	}
	if h.LineageSize == v.tree.Size() {
		if v.tree.Head().Root != h.LineageRoot {
			return v.blame(fmt.Errorf("block %d names another history before it", h.Height))
		}
		v.good, v.covered = v.n-1, max(v.covered, h.LineageSize)
	}
	v.block = h
	return nil
}

// blame adds to an error about the tree which lines it may be.
func (v *verifier) blame(err error) error {
	if v.good+1 == v.n-1 {
		return fmt.Errorf("%w: line %d is not that of its entry", err, v.n-1)
	}
	return fmt.Errorf("%w: of the lines from %d to %d at least one is not that of its entry", err, v.good+1, v.n-1)
}

func (v *verifier) head(l *Head) error {
	a, epochs, err := l.read(v.o.Network, v.o.Trust)
	if err != nil {
		return err
	}
	c, err := l.consistent(v.tree.Size())
	if err != nil {
		return err
	}
	again, err := Encode(HeadOf(v.tree.Size(), a.Genesis.Network(), &a, c))
	if err != nil {
		return err
	}
	if given, err := Encode(l); err != nil || !bytes.Equal(again, given) {
		return errors.Join(err, fmt.Errorf("%w: it is not the head that its ancestry ends with, after entry %d",
			ErrLine, v.tree.Size()-1))
	}
	if a.Genesis.Hash() != v.epochs[0].Scope {
		return fmt.Errorf("it is of scope %s, and the newest head of %s", a.Genesis.Hash(), v.epochs[0].Scope)
	}
	h := &a.Head.Header
	if err := c.Verify(v.tree.Head(), lineage.Head{Size: h.LineageSize, Root: h.LineageRoot}); err != nil {
		return v.blame(err)
	}
	v.good, v.covered = v.n, v.tree.Size()
	v.report.Genesis, v.report.Head, v.report.Epoch = a.Genesis, a.Head, epochs[len(epochs)-1]
	v.report.Heads++
	return nil
}

func (v *verifier) end() (*Report, error) {
	r := &v.report
	r.Next, r.Noted, r.Prefix = v.tree.Size(), v.mention, v.o.Prefix
	if r.First < 0 {
		r.First = r.Next
	}
	if v.covered < r.Next {
		return nil, fmt.Errorf("%w: nothing proves the lines after line %d: \"aweigh audit tail --since %s\" writes a head, to be appended",
			ErrTrail, v.good, since(r.Next))
	}
	if note := v.o.Note; note != nil && !v.mention {
		return nil, fmt.Errorf("%w: the checkpoint is of %d entries, and the trail shows those from %d up to %d: "+
			"take the checkpoint first, and write the trail beyond it", ErrTrail, note.Head.Size, r.First, r.Next)
	}
	return r, nil
}
