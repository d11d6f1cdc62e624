//go:build unix

package e2e

import (
	"os"
	"syscall"
)

// processes means that nodes can be run as processes here.
const processes = true

var (
	sigKill  os.Signal = syscall.SIGKILL
	sigTerm  os.Signal = syscall.SIGTERM
	sigPause os.Signal = syscall.SIGSTOP
	sigGo    os.Signal = syscall.SIGCONT
)
