// Package ports finds ports of this machine's loopback address that a process
// can listen on later.
package ports

import (
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
)

// The ports that Free gives. They lie below those from which systems take the
// near ends of connections (on Linux from 32768), so that no connection takes a
// port before its process listens there, or while that process is down.
const (
	first = 10_000
	end   = 32_000
)

var given = struct {
	sync.Mutex
	ports map[int]bool
}{ports: make(map[int]bool)}

// Free returns n ports on which nothing listens at 127.0.0.1, for TCP and for
// UDP. One process gets no port twice.
func Free(n int) ([]int, error) {
	given.Lock()
	defer given.Unlock()
	free := make([]int, 0, n)
	for try := 0; len(free) < n; try++ {
		port := first + rand.IntN(end-first)
		if given.ports[port] {
			continue
		}
		err := unused(port)
		if err == nil {
			free, given.ports[port] = append(free, port), true
		} else if try >= 1000+100*n {
			return nil, fmt.Errorf("no free ports: %w", err)
		}
	}
	return free, nil
}

// unused reports why nothing can listen on a port.
func unused(port int) error {
	address := fmt.Sprintf("127.0.0.1:%d", port)
	l, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	defer l.Close()
	u, err := net.ListenPacket("udp", address)
	if err != nil {
		return err
	}
	return u.Close()
}
