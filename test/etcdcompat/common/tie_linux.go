package common

import (
	"os/exec"
	"syscall"
)

// tie makes a process end with this one, whatever ends this one.
func tie(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
