// Package refusal gives errors the class of the reason to refuse input. A package that refuses input declares its
// errors with New. So the class stands beside the error, and no list of errors can lack one.
package refusal

// Class is a class of reasons to refuse input. There are few classes, so that they can be counted.
type Class uint8

// The classes. From Malformed on, they are ordered from input that only a liar or a broken program sends to input that
// an honest node may send at a bad moment.
const (
	Internal  Class = iota // the error has no class: the cause is this node, never the sender
	Malformed              // no frame, not in canonical form, or not the content that the tag requires
	Oversized              // more items than are accepted
	Forged                 // a signature, signer or weight that does not hold
	Invalid                // authentic, but its content breaks the rules
	Foreign                // of another network or scope
	Early                  // a block ahead of this node's clock: one of the two is wrong
	Stale                  // of another epoch, or expired
	Denied                 // of an author without rights here: its sender may know another policy
	Unasked                // an answer that was not asked for
	Full                   // there is no room for it now

	Classes // the number of classes
)

// String returns the class in words.
func (c Class) String() string {
	return [Classes]string{"internal", "malformed", "oversized", "forged", "invalid", "wrong network", "clock", "stale", "denied", "not asked for", "limits"}[c]
}

// Blame reports whether an honest node never sends such input.
func (c Class) Blame() bool { return Malformed <= c && c <= Foreign }

// classified is an error that carries its class.
type classified struct {
	class Class
	text  string
}

// New returns a new error of a class. It equals no other error, as those of errors.New. Internal marks errors that are
// this node's own fault whatever they wrap, such as a damaged store that holds a malformed ballot.
func New(c Class, text string) error { return &classified{c, text} }

func (e *classified) Error() string { return e.text }

// Refusal returns the class. Other types of errors may have this method too.
func (e *classified) Refusal() Class { return e.class }

// Of returns the class of an error: its own, or that of an error which it wraps. If it wraps several, the most
// specific class decides, and of equal ones the first: Malformed is the least specific, then Invalid, then the
// others, then an error that New marked as Internal. Of returns Internal for an error without a class.
func Of(err error) Class {
	c, _ := of(err)
	return c
}

func of(err error) (c Class, rank int) {
	switch e := err.(type) {
	case interface{ Refusal() Class }:
		switch c = e.Refusal(); c {
		case Malformed:
			return c, 1
		case Invalid:
			return c, 2
		case Internal:
			return c, 4
		}
		return c, 3
	case interface{ Unwrap() error }:
		return of(e.Unwrap())
	case interface{ Unwrap() []error }:
		for _, wrapped := range e.Unwrap() {
			if at, says := of(wrapped); says > rank {
				c, rank = at, says
			}
		}
	}
	return c, rank
}
