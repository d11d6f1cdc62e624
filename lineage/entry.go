package lineage

import (
	"errors"
	"fmt"
	"unicode/utf8"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
)

// ErrEntry is wrapped by errors about an entry that no log can hold.
var ErrEntry = errors.New("lineage: bad entry")

// Entry is the effect of one operation of one final mutation on one object. It
// names its scope, but does not tie the object to that scope: the UID stays the
// same wherever the object moves.
type Entry struct {
	_             struct{} `cbor:",toarray"`
	Scope         aweigh.ScopeID
	Height        aweigh.Height // of the block
	Index         uint32        // place among the block's entries, from 0
	Class         Class
	Mutation      aweigh.Hash // identity of the mutation; zero for what came with time alone, as the end of a lease
	Author        aweigh.Hash // key that signed the mutation; zero likewise
	Principal     []byte      // identity of the key whose rights the author used, by grants; empty if by its own
	Key           []byte      // name under which it happened, if any
	Object        aweigh.UID  // zero if the entry concerns no object
	Prev          int64       // position in this log of the object's previous entry, plus one; 0 is none
	Revision      int64       // of the key space after the operation
	Prior         aweigh.Hash // digest of the object before; zero if there was none; of a fork, of its origin
	Posterior     aweigh.Hash // digest of the object after; zero if it is gone
	Policy        aweigh.Hash // policy that was in force
	Roster        aweigh.Hash // roster that decided
	Justification string      // the author's words; UTF-8
	Caller        string      // for whom the author made the mutation, as the author states; UTF-8
	Reason        string      // why it failed, for Failed, the verb, for Claim, the other parent of a merge, or why an object went without a transaction; UTF-8
}

// Encode is the entry's canonical encoding.
func (e Entry) Encode() []byte { return canon.Encode(e) }

// DecodeEntry reads what Encode wrote; its errors wrap ErrEntry.
func DecodeEntry(data []byte) (Entry, error) {
	var e Entry
	if err := canon.Decode(data, &e); err != nil {
		return Entry{}, fmt.Errorf("%w: %w", ErrEntry, err)
	}
	if err := e.check(); err != nil {
		return Entry{}, err
	}
	return e, nil
}

// Acts is the key whose rights were used: the principal, or without one the author. It is zero for what came with time
// alone.
func (e *Entry) Acts() (id aweigh.Hash) {
	if len(e.Principal) > 0 {
		copy(id[:], e.Principal)
		return id
	}
	return e.Author
}

// Hash is the RFC 6962 leaf hash of the encoding: SHA-256(0x00 || Encode()).
func (e Entry) Hash() aweigh.Hash { return leafHash(e.Encode()) }

func leafHash(encoded []byte) aweigh.Hash { return aweigh.Hash(tlog.RecordHash(encoded)) }

// check keeps out what could be encoded but not decoded again, or decoded but
// never meant.
func (e *Entry) check() error {
	switch {
	case !e.Class.Valid():
		return fmt.Errorf("%w: %s", ErrEntry, e.Class)
	case e.Prev < 0 || e.Prev > MaxSize:
		return fmt.Errorf("%w: previous entry %d", ErrEntry, e.Prev)
	case len(e.Principal) != 0 && len(e.Principal) != len(aweigh.Hash{}):
		return fmt.Errorf("%w: a principal of %d bytes", ErrEntry, len(e.Principal))
	case e.Revision < 0:
		return fmt.Errorf("%w: revision %d", ErrEntry, e.Revision)
	case !utf8.ValidString(e.Justification):
		return fmt.Errorf("%w: justification is not UTF-8", ErrEntry)
	case !utf8.ValidString(e.Caller):
		return fmt.Errorf("%w: caller is not UTF-8", ErrEntry)
	case !utf8.ValidString(e.Reason):
		return fmt.Errorf("%w: reason is not UTF-8", ErrEntry)
	}
	return nil
}
