// Package must turns broken invariants into a panic that names them. A panic of
// this kind means a fault in this program or its storage, never in its input;
// the runner turns it into a clean stop.
package must

import "fmt"

// Violation is the value with which a failed Hold panics.
type Violation struct{ What string }

// Error implements error.
func (v Violation) Error() string { return "invariant broken: " + v.What }

// Hold panics with a Violation unless ok. The arguments are those of fmt.Sprintf.
func Hold(ok bool, format string, args ...any) {
	if !ok {
		panic(Violation{What: fmt.Sprintf(format, args...)})
	}
}

// OK panics with a Violation if err is not nil; doing names the action.
func OK(err error, doing string) {
	if err != nil {
		panic(Violation{What: doing + ": " + err.Error()})
	}
}
