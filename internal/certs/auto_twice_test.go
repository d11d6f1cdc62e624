package certs

import (
	"crypto/tls"
	"testing"
)

// TestNoAddressStandsTwice: a host that is this machine's in any case is named once.
func TestNoAddressStandsTwice(t *testing.T) {
	f, err := Auto(t.TempDir(), "127.0.0.1", "localhost", "192.0.2.1", "192.0.2.1", "::1")
	if err != nil {
		t.Fatal(err)
	}
	own, err := tls.LoadX509KeyPair(f.Cert, f.Key)
	if err != nil {
		t.Fatal(err)
	}
	seen := make(map[string]bool)
	for _, ip := range own.Leaf.IPAddresses {
		if seen[ip.String()] {
			t.Errorf("%v stands there twice", ip)
		}
		seen[ip.String()] = true
	}
	for _, name := range own.Leaf.DNSNames {
		if seen[name] {
			t.Errorf("%s stands there twice", name)
		}
		seen[name] = true
	}
	if !seen["192.0.2.1"] || !seen["localhost"] {
		t.Errorf("it names %v", seen)
	}
}
