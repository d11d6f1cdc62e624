//go:build !unix

package main

import (
	"os/exec"
	"syscall"
)

// ownGroup does nothing here.
func ownGroup(*exec.Cmd) {}

// signalGroup ends the child, whatever the signal.
func signalGroup(cmd *exec.Cmd, _ syscall.Signal) { _ = cmd.Process.Kill() }
