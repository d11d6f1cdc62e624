//go:build !linux

package doctor

import "os"

func diskOf(string) (disk, error) { return disk{}, errSystem }

// syncData makes what was written durable.
func syncData(f *os.File) error { return f.Sync() }
