// Package ports finds ports for processes that tests start. It stands apart from the program's own package of that
// name, as this module depends on nothing of the program's.
package ports

import (
	"fmt"
	"math/rand/v2"
	"net"
)

// Free returns n ports of 127.0.0.1 on which nothing listens. They lie below
// those that the system gives to outgoing connections, so that a process that
// was stopped gets its own back.
func Free(n int) (ports []int, err error) {
	for try := 0; len(ports) < n; try++ {
		port := 10_000 + rand.IntN(20_000)
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			defer l.Close() // at the end, so that they are distinct
			ports = append(ports, port)
		} else if try == 1000*n {
			return nil, fmt.Errorf("no free ports: %w", err)
		}
	}
	return ports, nil
}
