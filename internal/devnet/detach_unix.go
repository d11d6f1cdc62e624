//go:build unix

package devnet

import (
	"os/exec"
	"syscall"
)

// detach keeps Ctrl-C in the terminal from children: their parent stops them.
func detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
