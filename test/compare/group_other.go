//go:build !unix

package main

import (
	"os/exec"
	"syscall"
	"time"
)

// ownGroup does nothing here.
func ownGroup(*exec.Cmd) {}

// signalGroup ends the child, whatever the signal.
func signalGroup(cmd *exec.Cmd, _ syscall.Signal) { _ = cmd.Process.Kill() }

// generatorTime is not known here.
func generatorTime() time.Duration { return 0 }
