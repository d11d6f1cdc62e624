package scope

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/action"
	"github.com/aweigh/aweigh/internal/plain"
	"github.com/aweigh/aweigh/votes"
)

// Author is an entry of a policy that permits some keys to change the scope (P44). A mutation needs an entry that
// covers all that it changes; entries add up. Decisions, withdrawals and changes of users have rules of their own and
// need none.
type Author struct {
	_        struct{} `cbor:",toarray"`
	Name     string   // for people; the entries of a policy have different names and stand in their order
	Who      Who
	Key      votes.PublicKey // that signs the mutations; none unless Who is OneKey
	Prefixes [][]byte        // of the keys that may change, in order, none below another; none: all keys
	Verbs    []string        // what may be done, in order: see AuthorVerbs, and the verbs of actions; none: everything
	List     []byte          // of OnList alone: where the peers stand, see Listing; otherwise empty
	Quota    Quota           // what all of its authors may have together
}

// Who states whom an Author permits.
type Who uint8

const (
	// OneKey is the author that signs with Author.Key: a person, a program, or a node that is no anchor's.
	OneKey Who = 1
	// Anchors are the anchors of the roster and their nodes.
	Anchors Who = 2
	// Anyone is every key. As a reader, it is every peer that the root scope lets read.
	Anyone Who = 3
	// OnList are the peers that the scope's own keys list, and they may only read (P48).
	OnList Who = 4
)

// String is the text of a policy: "anchors", "any", "listed" or "key".
func (w Who) String() string {
	switch w {
	case OneKey:
		return "key"
	case Anchors:
		return "anchors"
	case Anyone:
		return "any"
	case OnList:
		return "listed"
	}
	return fmt.Sprintf("who(%d)", uint8(w))
}

// The verbs that are no actions'.
const (
	VerbPut     = "put"     // also rollbacks
	VerbRead    = "read"    // of peers: to get what the scope holds, see Readers; no change needs it
	VerbDelete  = "delete"  // also the deletions of a lease that is revoked
	VerbAlias   = "alias"   // all changes of names
	VerbLease   = "lease"   // to grant, keep alive and revoke
	VerbCompact = "compact" // needs an entry without prefixes
	VerbUsers   = "users"   // to change the network's users and roles, for anchors; likewise
)

// AuthorVerbs are the verbs that are no actions'.
var AuthorVerbs = []string{VerbAlias, VerbCompact, VerbDelete, VerbLease, VerbPut, VerbRead, VerbUsers}

// Bounds of a policy's authors.
const (
	maxAuthors        = 1024
	maxAuthorPrefixes = 64
	maxAuthorVerbs    = 64
	maxAuthorName     = 64 // bytes
)

// DefaultAuthors lets the anchors and their nodes change everything, and no one else. Observers are listed.
func DefaultAuthors() []Author {
	return []Author{
		{Name: Anchors.String(), Who: Anchors},
		{Name: "observers", Who: OnList, Verbs: []string{VerbRead}, List: []byte("/observers/")},
	}
}

// checkAuthors reports whether a policy can have its authors.
func (p *Policy) checkAuthors() error {
	switch {
	case !slices.ContainsFunc(p.Authors, p.letsChange):
		return fmt.Errorf("%w: a policy none of whose authors can change a key would lock all of them out; list at least one, as in: anchors who=anchors", ErrInvalid)
	case len(p.Authors) > maxAuthors:
		return fmt.Errorf("%w: %d authors, at most %d are taken", ErrInvalid, len(p.Authors), maxAuthors)
	}
	for _, verb := range AuthorVerbs {
		if _, taken := p.Actions.Find(verb); taken { // an author that may put, say, could do the action as well
			return fmt.Errorf("%w: an action cannot be called %s: authors have a verb of that name", ErrInvalid, verb)
		}
	}
	for i := range p.Authors {
		a := &p.Authors[i]
		err := a.check(p.Limits.KeyBytes)
		if err == nil && i > 0 && p.Authors[i-1].Name >= a.Name {
			err = errors.New("authors have different names, and stand in their order")
		}
		if err != nil {
			return fmt.Errorf("%w: author %q: %w", ErrInvalid, a.Name, err)
		}
	}
	return nil
}

// letsChange reports whether an entry permits some change of a key: to put, or an action of the policy that is no read
// and no signal.
func (p *Policy) letsChange(a Author) bool {
	return a.has(VerbPut) || slices.ContainsFunc(a.Verbs, func(verb string) bool {
		rule, ok := p.Actions.Find(verb)
		return ok && (rule.Class == action.Write || rule.Class == action.Claim)
	})
}

// Check returns why no policy can have the entry, whatever its limits.
func (a *Author) Check() error { return a.check(MostLimits().KeyBytes) }

func (a *Author) check(keyBytes int) error {
	switch hasKey := a.Key.Scheme != "" || len(a.Key.Bytes) > 0; {
	case a.Name == "" || len(a.Name) > maxAuthorName || !utf8.ValidString(a.Name) || strings.ContainsFunc(a.Name, unfitForName):
		return fmt.Errorf("a name has 1 to %d bytes of text, without spaces and =", maxAuthorName)
	case plain.Name(a.Name) != nil:
		return plain.Name(a.Name)
	case a.Who < OneKey || a.Who > OnList:
		return fmt.Errorf("it permits %s, which is unknown", a.Who)
	case a.Who != OneKey && hasKey:
		return fmt.Errorf("it permits %s, and names a key", a.Who)
	case a.Who == OneKey && a.Key.Check() != nil:
		return a.Key.Check()
	case a.Who == OnList && (!a.reads() || len(a.Prefixes) > 0):
		return errors.New("who=listed has verbs=read and no prefix: listed peers read the whole scope, and change nothing")
	case (a.Who == OnList) != (len(a.List) > 0) || len(a.List) > keyBytes:
		return fmt.Errorf("a list, of at most %d bytes, and who=listed go together", keyBytes)
	case len(a.Prefixes) > maxAuthorPrefixes || len(a.Verbs) > maxAuthorVerbs:
		return fmt.Errorf("at most %d prefixes and %d verbs are taken", maxAuthorPrefixes, maxAuthorVerbs)
	}
	for i, prefix := range a.Prefixes {
		if len(prefix) == 0 || len(prefix) > keyBytes {
			return fmt.Errorf("a prefix has 1 to %d bytes", keyBytes)
		}
		if i > 0 && (bytes.Compare(a.Prefixes[i-1], prefix) >= 0 || bytes.HasPrefix(prefix, a.Prefixes[i-1])) {
			return fmt.Errorf("prefixes stand in order, none twice or below another, and %q comes after %q", prefix, a.Prefixes[i-1])
		}
	}
	for i, verb := range a.Verbs {
		if err := action.CheckVerb(verb); err != nil {
			return err
		}
		if i > 0 && a.Verbs[i-1] >= verb {
			return errors.New("verbs are different, and stand in order")
		}
	}
	return a.Quota.check()
}

// unfitForName reports characters that a name in the text of a policy cannot have.
func unfitForName(r rune) bool { return r <= ' ' || r == 0x7f || r == '=' }

// whole reports whether it permits every change.
func (a *Author) whole() bool { return len(a.Prefixes) == 0 && len(a.Verbs) == 0 }

func (a *Author) has(verb string) bool {
	if len(a.Verbs) == 0 {
		return true
	}
	_, ok := slices.BinarySearch(a.Verbs, verb)
	return ok
}

// Permits reports whether an entry permits a verb to the authors that it is about, as execution asks for it: to compact
// all keys, to change all users, to lease any, and everything else on the key.
func (a *Author) Permits(verb string, key []byte) bool {
	switch verb {
	case VerbCompact, VerbUsers:
		return a.has(verb) && len(a.Prefixes) == 0
	case VerbLease:
		return a.has(verb)
	}
	return a.permits(verb, key, nil)
}

// OfNoKey reports whether a verb is about no key.
func OfNoKey(verb string) bool { return verb == VerbCompact || verb == VerbLease || verb == VerbUsers }

// permits reports whether an entry permits a verb on a range of keys, in the sense of Op.
func (a *Author) permits(verb string, key, end []byte) bool { return a.has(verb) && a.covers(key, end) }

// covers reports whether all keys of a range, in the sense of Op, are among those of the entry.
func (a *Author) covers(key, end []byte) bool {
	if len(a.Prefixes) == 0 {
		return true
	}
	// They stand in order, none below another: only the last one up to the key can be its start.
	i, found := slices.BinarySearchFunc(a.Prefixes, key, bytes.Compare)
	if !found {
		i--
	}
	return i >= 0 && Covers(a.Prefixes[i], key, end)
}

// Rights are what an author may change: the entries of the policy that permit it. The zero value permits nothing.
type Rights struct {
	entries []*Author
	readers []*Author // entries for readers alone, but those of lists
	whole   bool
	within  []Grant // that all of it must be within
	policy  []Author
}

// None reports whether the author may change nothing.
func (r Rights) None() bool { return len(r.entries) == 0 }

// Within returns the part of the rights that a chain of grants leaves.
func (r Rights) Within(grants []Grant) Rights {
	r.within = grants
	r.whole = r.whole && len(grants) == 0
	return r
}

// outside reports whether a grant does not permit a verb on a range of keys, in the sense of Op.
func (r Rights) outside(verb string, key, end []byte) bool {
	for i := range r.within {
		g := &r.within[i]
		if OfNoKey(verb) {
			if !g.Permits(verb, nil) {
				return true
			}
			continue
		}
		if !g.bounds().permits(verb, key, end) || r.keeps(g, key, end) {
			return true
		}
	}
	return false
}

// keeps reports whether a range of keys has such by which the signers of the grants keep their own rights, and that the
// grant does not name: the records of the grants, and the lists of the policy with their invites. A prefix that a key
// or a list begins with does not name it.
func (r Rights) keeps(g *Grant, key, end []byte) bool {
	for i := range r.within {
		if record := r.within[i].Record; len(record) > 0 && Overlap(key, end, record, nil) && !g.names(record) {
			return true
		}
	}
	for i := range r.policy {
		if list := r.policy[i].List; len(list) > 0 && Overlap(key, end, list, PrefixEnd(list)) && !g.names(list) {
			return true
		}
	}
	return false
}

// Entry returns the first entry that permits a verb, in the sense of Author.Permits, and nil if none does.
func (r Rights) Entry(verb string, key []byte) *Author {
	if r.outside(verb, key, nil) {
		return nil
	}
	for _, a := range r.entries {
		if a.Permits(verb, key) {
			return a
		}
	}
	return nil
}

// permits reports whether some entry permits a verb on a range of keys, in the sense of Op.
func (r Rights) permits(verb string, key, end []byte) bool {
	permits := func(a *Author) bool { return a.permits(verb, key, end) }
	return r.whole || slices.ContainsFunc(r.entries, permits) && !r.outside(verb, key, end)
}

// Rights returns what an author may change under a policy: one that signs with a key, and may be an anchor or its node.
func (p *Policy) Rights(author aweigh.Hash, anchor bool) Rights {
	return rightsOf(p.Authors, anchor, func(i int) bool { return p.Authors[i].Key.ID() == author })
}

// Rights returns what the author that signs with a key may change in the epoch.
func (e *Epoch) Rights(author aweigh.Hash) Rights {
	_, anchor := e.seats[author]
	return rightsOf(e.Policy.Authors, anchor, func(i int) bool { return e.keys[i] == author })
}

// IsAnchor reports whether an author is an anchor of the epoch, or the node of one.
func (e *Epoch) IsAnchor(author aweigh.Hash) bool {
	_, anchor := e.seats[author]
	return anchor
}

// rightsOf are the entries about an author: an anchor or its node, or one whose key an entry of one key has. Those for
// readers alone permit no change.
func rightsOf(all []Author, anchor bool, hasKey func(int) bool) (r Rights) {
	r.policy = all
	for i := range all {
		a := &all[i]
		switch about := a.Who == Anyone || a.Who == Anchors && anchor || a.Who == OneKey && hasKey(i); {
		case !about:
		case a.reads():
			r.readers = append(r.readers, a)
		default:
			r.entries = append(r.entries, a)
			r.whole = r.whole || a.whole()
		}
	}
	return r
}

// needsAuthor reports whether the policy must list the author of a mutation. Decisions, withdrawals and what islands
// decided have rules of their own.
func (c Class) needsAuthor() bool { return c != Govern && c != Withdraw && !c.alone() }

// alone reports whether a mutation of the class stands in a bundle of its own, which the node of an anchor signs: it
// brings what another scope decided.
func (c Class) alone() bool { return c == Rejoin || c == Bring || c == Carry }

// verbOfAll is the verb that entries must permit for a class of mutations that are about no key, "" for other classes.
func (c Class) verbOfAll() string {
	switch c {
	case Compact:
		return VerbCompact
	case Lease:
		return VerbLease
	case Permit:
		return VerbUsers
	}
	return ""
}

// ErrNoAuthor is the failure of mutations of authors that the policy does not list. It wraps ErrDenied.
var ErrNoAuthor = fmt.Errorf("%w: the policy does not list this author", ErrDenied)

// rightsOf are the rights of the author of a mutation.
func (x *execution) rightsOf(m *CheckedMutation) Rights {
	if author := m.Principal(); x.author != author {
		x.author, x.rights = author, x.epoch.Rights(author)
	}
	if len(m.grants) > 0 {
		return x.rights.Within(m.grants)
	}
	return x.rights
}

// authorized returns why the policy's authors and grants do not permit a mutation, whatever its keys.
func (x *execution) authorized(m *CheckedMutation) (failure, err error) {
	if !m.Class.needsAuthor() {
		return nil, nil
	}
	if failure, err := x.grantsHold(m); failure != nil || err != nil {
		return failure, err
	}
	switch r, verb := x.rightsOf(m), m.Class.verbOfAll(); {
	case r.whole:
	case r.None():
		return ErrNoAuthor, nil
	case verb != "" && r.Entry(verb, nil) == nil:
		return r.unauthorized(verb, nil, nil), nil
	}
	return nil, nil
}

// authorizes returns why the policy's authors do not permit one put or deletion of a mutation, or its action on a key.
func (x *execution) authorizes(m *CheckedMutation, op *Op) (failure error) {
	return x.rightsOf(m).lacksOp(m, op)
}

// lacksOp returns why the rights do not suffice for a put or a deletion of a mutation. A put that attaches its key to a
// lease deletes the key when the lease ends.
func (r Rights) lacksOp(m *CheckedMutation, op *Op) (failure error) {
	m.asksFor(op, func(verb string, key, end []byte) bool {
		switch {
		case r.permits(verb, key, end):
		case m.states(key, end):
			failure = r.unauthorized(verb, key, end)
		case m.Class == Lease:
			failure = r.unauthorizedTo(verb, key, end, " a key of the lease")
		default:
			failure = r.unauthorizedTo(verb, key, end, " another alias of the object")
		}
		return failure == nil
	})
	return failure
}

// states reports whether a mutation names a range of keys in just this way. What it changes besides, its author may not
// be permitted to read, so no reason names that.
func (m *CheckedMutation) states(key, end []byte) (stated bool) {
	m.Names(func(k, e []byte) bool {
		stated = bytes.Equal(k, key) && bytes.Equal(e, end)
		return !stated
	})
	return stated
}

// restricted reports whether some change of a mutation's author may not be permitted, by rules or by the list of
// authors.
func (x *execution) restricted(m *CheckedMutation) bool {
	return x.epoch.rules.Has(writeVerb) || !x.rightsOf(m).whole
}

// unauthorized is the failure of a change of a range of keys that no entry for its author covers, or a grant of its
// token does not.
func (r Rights) unauthorized(verb string, key, end []byte) error {
	const most = 64 // bytes of a key in a reason
	text := ""
	if len(key) > most {
		text = fmt.Sprintf(" %q…", key[:most])
	} else if key != nil {
		text = fmt.Sprintf(" %q", key)
	}
	return r.unauthorizedTo(verb, key, end, text)
}

// unauthorizedTo is unauthorized with the words for the keys.
func (r Rights) unauthorizedTo(verb string, key, end []byte, text string) error {
	who := "the policy does not permit this author"
	if slices.ContainsFunc(r.entries, func(a *Author) bool { return a.permits(verb, key, end) || key == nil && a.Permits(verb, nil) }) {
		who = "the token does not permit"
	}
	return fmt.Errorf("%w: %s to %s%s", ErrDenied, who, verb, text)
}
