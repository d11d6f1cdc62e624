package socket

import (
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
)

// ErrOtherUser means that the process at the other end of a connection runs as another user.
var ErrOtherUser = errors.New("socket: the connection is another user's")

// Owner returns the user of the process at the other end of a connection, if that is the user of this process, or root.
// Errors wrap ErrOtherUser. Where the system does not name users it returns the user of this process: only the modes of
// the socket and of its directory keep others out there.
func Owner(c net.Conn) (uid uint32, err error) {
	user, known, err := userOf(c)
	switch {
	case err != nil:
		return 0, fmt.Errorf("%w: %w", ErrOtherUser, err)
	case !known:
		user = os.Geteuid()
	case user != 0 && user != os.Geteuid():
		return 0, fmt.Errorf("%w: of user ID %d", ErrOtherUser, user)
	}
	return uint32(user), nil
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
