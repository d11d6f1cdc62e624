package e2e

import (
	"os/exec"
	"syscall"
)

// tie makes a process end with this one, whatever ends this one, and keeps
// Ctrl-C in the terminal from it: this one ends it.
func tie(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
