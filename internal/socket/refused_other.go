//go:build !unix

package socket

import (
	"errors"
	"syscall"
)

// refused reports whether an error means that no process listens at a socket: WSAECONNREFUSED.
func refused(err error) bool { return errors.Is(err, syscall.Errno(10061)) }
