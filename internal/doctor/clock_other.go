//go:build !linux

package doctor

import "time"

func kernelClock() (synced bool, bound time.Duration, err error) { return false, 0, errSystem }
