package scope

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"github.com/aweigh/aweigh"
)

// NameKind states what a Naming does.
type NameKind uint8

const (
	// Bind gives an object a further alias.
	Bind NameKind = 1
	// Move puts one alias of an object in the place of another.
	Move NameKind = 2
	// Unbind takes an alias from an object. The last one retires it.
	Unbind NameKind = 3
	// Fork makes a new object whose first content is a version of another.
	Fork NameKind = 4
	// Rollback gives an object the content that one of its versions had.
	Rollback NameKind = 5
	// Send moves the only alias of an object, and the object, to another scope of the network (P67).
	Send NameKind = 6
)

// String is the kind in lower case.
func (k NameKind) String() string {
	switch k {
	case Bind:
		return "bind"
	case Move:
		return "move"
	case Unbind:
		return "unbind"
	case Fork:
		return "fork"
	case Rollback:
		return "rollback"
	case Send:
		return "send"
	}
	return fmt.Sprintf("naming(%d)", uint8(k))
}

// Naming changes which keys name an object. Every key with content is an alias
// of one object, whose UID no change of names alters. All aliases of an object
// show the same content: a put under one appears under all.
//
// Object is the UID of the object, so that a request that comes after another
// author's cannot change an object that its author never saw. A version is always
// one of a known object.
type Naming struct {
	_        struct{} `cbor:",toarray"`
	Kind     NameKind
	Object   aweigh.UID     // zero: whichever Key names; not for Fork and Rollback
	Key      []byte         // an alias of Object: to keep (Bind), to lose (Move, Unbind, Send), to write to (Rollback)
	To       []byte         // the alias that comes to be: Bind, Move, Fork, and in another scope Send
	Until    aweigh.Instant // Move: Key leads to Object until then, by the blocks' time; 0: not at all. Send: see Sent
	From     []byte         // Fork, Rollback: the key under which a version of Object stands
	Revision int64          // of that version
	Sub      uint32         // its place within the revision
}

// About describes a naming in a few words.
func (n *Naming) About() string {
	switch n.Kind {
	case Bind:
		return fmt.Sprintf("bind %q to what %q names", n.To, n.Key)
	case Move:
		return fmt.Sprintf("move %q to %q", n.Key, n.To)
	case Unbind:
		return fmt.Sprintf("unbind %q", n.Key)
	case Fork:
		return fmt.Sprintf("fork %q of revision %d as %q", n.From, n.Revision, n.To)
	case Send:
		return fmt.Sprintf("send what %q names to another scope as %q", n.Key, n.To)
	case Rollback:
		return fmt.Sprintf("roll %q back to revision %d of %q", n.Key, n.Revision, n.From)
	}
	return n.Kind.String()
}

const (
	// MaxAliases bounds the aliases of one object: a put under one is written
	// under all.
	MaxAliases = 16
	// MaxRedirect bounds how long a moved alias leads to its object.
	MaxRedirect = 366 * 24 * time.Hour
	// maxRedirects bounds the moved aliases of a scope that still lead somewhere.
	maxRedirects = 100_000
)

// What a Naming can fail for.
var (
	ErrUnnamed   = errors.New("scope: the alias does not name that object, or no longer; look it up again")
	ErrNamed     = errors.New("scope: the alias names an object already; unbind it first, or choose another")
	ErrAliases   = fmt.Errorf("scope: the object has %d aliases, as many as it can; unbind one first", MaxAliases)
	ErrRedirects = fmt.Errorf("scope: %d moved aliases lead somewhere, as many as can; move this one without a redirect", maxRedirects)
	ErrUntil     = fmt.Errorf("scope: a redirect ends after the block's time, and at most %d days later", MaxRedirect/(24*time.Hour))
	ErrNoVersion = errors.New("scope: that version is not there, or was dropped by a compaction; see the object's history")
)

// makes is the alias that comes to be in this scope; nil if none does.
func (n *Naming) makes() []byte {
	if n.Kind == Send {
		return nil
	}
	return n.To
}

// own are the keys of a naming that the scope must own: all but that which it sends an object to.
func (n *Naming) own() (keys [][]byte) {
	for _, key := range [][]byte{n.Key, n.makes(), n.From} {
		if len(key) > 0 {
			keys = append(keys, key)
		}
	}
	return keys
}

// check reports whether the naming is well-formed. What its kind does not use
// must be absent, so that one meaning has one encoding.
func (n *Naming) check(lim Limits) error {
	forks, rolls := n.Kind == Fork, n.Kind == Rollback
	foreign := forks && len(n.Key) > 0 || (n.Kind == Unbind || rolls) && len(n.To) > 0 || n.Kind != Move && n.Kind != Send && n.Until != 0 ||
		!forks && !rolls && (len(n.From) > 0 || n.Revision != 0 || n.Sub != 0)
	switch {
	case n.Kind < Bind || n.Kind > Send:
		return fmt.Errorf("unknown naming %d", uint8(n.Kind))
	case foreign:
		return fmt.Errorf("a %s with content of another kind", n.Kind)
	case n.Kind == Send && (len(n.Key) > maxSentKey || len(n.To) > maxSentKey):
		return fmt.Errorf("a send of aliases of more than %d bytes", maxSentKey)
	case n.Object.IsZero() && (forks || rolls || n.Kind == Send):
		return fmt.Errorf("a %s of no object", n.Kind)
	case n.Until < 0 || n.Revision < 0:
		return fmt.Errorf("a %s until %d, of revision %d", n.Kind, n.Until, n.Revision)
	case len(n.To) > 0 && bytes.Equal(n.Key, n.To):
		return fmt.Errorf("a %s of an alias to itself", n.Kind)
	}
	for _, k := range []struct {
		key  []byte
		used bool
	}{{n.Key, !forks}, {n.To, n.Kind == Bind || n.Kind == Move || n.Kind == Send || forks}, {n.From, forks || rolls}} {
		if !k.used {
			continue
		}
		if err := lim.checkKey(k.key); err != nil {
			return err
		}
	}
	return nil
}
