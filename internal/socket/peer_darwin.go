package socket

import (
	"net"

	"golang.org/x/sys/unix"
)

// userOf returns the user that connected: LOCAL_PEERCRED, unix(4).
func userOf(c net.Conn) (uid int, known bool, err error) {
	err = control(c, func(fd int) error {
		cred, err := unix.GetsockoptXucred(fd, unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
		if err == nil {
			uid = int(cred.Uid)
		}
		return err
	})
	return uid, true, err
}
