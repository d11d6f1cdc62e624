package socket

import (
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
)

// ErrStranger means that the process at the other end of a connection runs as another user.
var ErrStranger = errors.New("socket: the connection is another user's")

// Owned reports whether the process at the other end of a connection runs as the user of this process, or as root.
// Errors wrap ErrStranger. Where the system does not name users it reports no error: only the modes of the socket and
// of its directory keep others out there.
func Owned(c net.Conn) error {
	uid, known, err := userOf(c)
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", ErrStranger, err)
	case known && uid != 0 && uid != os.Geteuid():
		return fmt.Errorf("%w: of user ID %d", ErrStranger, uid)
	}
	return nil
}

// control calls f with the descriptor of a connection.
func control(c net.Conn, f func(fd int) error) error {
	x, ok := c.(syscall.Conn)
	if !ok {
		return fmt.Errorf("socket: a %T has no descriptor", c)
	}
	raw, err := x.SyscallConn()
	if err != nil {
		return err
	}
	var result error
	if err := raw.Control(func(fd uintptr) { result = f(int(fd)) }); err != nil {
		return err
	}
	return result
}
