//go:build !linux

package common

import "os/exec"

// tie does nothing here: a process is left over if the tests panic.
func tie(*exec.Cmd) {}
