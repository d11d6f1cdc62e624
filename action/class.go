package action

import "fmt"

// Class states what comes of a verb that is allowed.
type Class uint8

const (
	// Read returns the object of the name.
	Read Class = 1
	// Write puts a value under the name.
	Write Class = 2
	// Signal delivers a value to the watchers of the name, and stores nothing.
	Signal Class = 3
	// Claim records that the author asserts ownership of the object, or authority over
	// it, and changes no content.
	Claim Class = 4
)

var classNames = [...]string{Read: "read", Write: "write", Signal: "signal", Claim: "claim"}

// valid reports whether c is one of the classes.
func (c Class) valid() bool { return c >= Read && c <= Claim }

// String is the class in lower case.
func (c Class) String() string {
	if !c.valid() {
		return fmt.Sprintf("class(%d)", uint8(c))
	}
	return classNames[c]
}

// ParseClass is the class of a name.
func ParseClass(text string) (Class, error) {
	for c := Read; c <= Claim; c++ {
		if classNames[c] == text {
			return c, nil
		}
	}
	return 0, fmt.Errorf("%w: %q is no class of actions: read, write, signal or claim", ErrRule, text)
}
