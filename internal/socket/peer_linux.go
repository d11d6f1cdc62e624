package socket

import (
	"net"

	"golang.org/x/sys/unix"
)

// userOf returns the user that connected: SO_PEERCRED, unix(7).
func userOf(c net.Conn) (uid int, known bool, err error) {
	err = control(c, func(fd int) error {
		cred, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
		if err == nil {
			uid = int(cred.Uid)
		}
		return err
	})
	return uid, true, err
}
