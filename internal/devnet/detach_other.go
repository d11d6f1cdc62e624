//go:build !unix

package devnet

import "os/exec"

// detach does nothing here.
func detach(*exec.Cmd) {}
