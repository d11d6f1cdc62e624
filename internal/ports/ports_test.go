package ports

import (
	"fmt"
	"net"
	"testing"
)

func TestFreePortsCanBeListenedOn(t *testing.T) {
	seen := make(map[int]bool)
	for range 20 {
		ports, err := Free(10)
		if err != nil {
			t.Fatal(err)
		}
		for _, port := range ports {
			if seen[port] || port < first || port >= end {
				t.Errorf("port %d, given before: %t", port, seen[port])
			}
			seen[port] = true
			l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
		}
	}
}

func TestTakenPortsAreNotFree(t *testing.T) {
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer tcp.Close()
	udp, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer udp.Close()
	for _, port := range []int{tcp.Addr().(*net.TCPAddr).Port, udp.LocalAddr().(*net.UDPAddr).Port} {
		if unused(port) == nil {
			t.Errorf("port %d is taken", port)
		}
	}
}
