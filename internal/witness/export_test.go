package witness

import "time"

// SetLimit sets how long a witness is waited for, until the function that it returns is called.
func SetLimit(d time.Duration) (restore func()) {
	before := within
	within = d
	return func() { within = before }
}
