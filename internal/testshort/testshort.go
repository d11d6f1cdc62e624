// Package testshort holds what tests share about go test -short, which runs what finishes within seconds.
package testshort

import "testing"

// Skip skips a test that takes seconds if the tests run with -short.
func Skip(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("takes seconds, and -short was given")
	}
}
