package doctor

import (
	"fmt"
	"syscall"
	"time"
)

// timeError is the answer of adjtimex(2) while the clock is not synchronized.
const timeError = 5

// kernelClock reports whether the kernel was told that the clock is
// synchronized, and within which bound.
func kernelClock() (synced bool, bound time.Duration, err error) {
	var t syscall.Timex
	state, err := syscall.Adjtimex(&t)
	if err != nil {
		return false, 0, fmt.Errorf("the system does not report it: %w", err)
	}
	return state != timeError, time.Duration(t.Maxerror) * time.Microsecond, nil
}
