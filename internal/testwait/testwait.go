// Package testwait holds how tests wait for what others do: for a condition, never for a time.
package testwait

import (
	"errors"
	"fmt"
	"testing"
	"time"
)

// Patience is how long a test waits for what must happen. Only failures take it, so it is long: the machine of a test
// may be busy.
const Patience = time.Minute

// every is how often a condition is looked at.
const every = 3 * time.Millisecond

// For waits until check returns no error, and ends the test with the last one if none does within Patience.
func For(t testing.TB, check func() error) {
	t.Helper()
	for began := time.Now(); ; time.Sleep(every) {
		err := check()
		if err == nil {
			return
		}
		if time.Since(began) > Patience {
			t.Fatalf("not within %v: %v", Patience, err)
		}
	}
}

// Until waits until ok holds, and ends the test if it does not within Patience.
func Until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	For(t, func() error {
		if !ok() {
			return errors.New(what)
		}
		return nil
	})
}

// More waits until a count has grown by n: work goes on.
func More(t testing.TB, what string, n int, count func() int) {
	t.Helper()
	began := count()
	For(t, func() error {
		if done := count() - began; done < n {
			return fmt.Errorf("%d of %d more %s", done, n, what)
		}
		return nil
	})
}
