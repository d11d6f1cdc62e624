//go:build !unix

package e2e

import "os"

// processes means that nodes can be run as processes here.
const processes = false

var (
	sigKill  = os.Kill
	sigTerm  = os.Interrupt
	sigPause = os.Kill
	sigGo    = os.Kill
)
