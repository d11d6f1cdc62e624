package backup

import (
	"net"
	"strings"

	"github.com/aweigh/aweigh/internal/home"
	"github.com/aweigh/aweigh/scope"
)

// beside changes the settings of a backup for an observer that runs beside the node that
// was backed up, on the same machine or another: it has another name, listens at free
// ports, announces nothing that is the other's, and knows where the other is.
func beside(s *home.Settings, g scope.Genesis) {
	for _, a := range g.Anchors {
		if a.Name != s.Name { // the keys, which would identify the node, may not be in the backup
			continue
		}
		at := s.Announce
		if len(at) == 0 {
			at = s.Listen
		}
		for _, text := range at {
			if !strings.Contains(text, "/0.0.0.0/") && !strings.Contains(text, "/ip6/::/") && !freePort(text) {
				s.Bootstrap = append(s.Bootstrap, text+"/p2p/"+a.Peer)
			}
		}
	}
	s.Name += "-observer"
	for i, text := range s.Listen {
		s.Listen[i] = anyPort(text)
	}
	s.Announce, s.EtcdURLs = nil, nil
	for _, address := range []*string{&s.API, &s.Etcd, &s.Metrics} {
		if host, _, err := net.SplitHostPort(*address); err == nil {
			*address = net.JoinHostPort(host, "0")
		}
	}
}

// anyPort is a multiaddr with port 0, which is any that is free.
func anyPort(multiaddr string) string {
	parts := strings.Split(multiaddr, "/")
	for i := 1; i < len(parts); i++ {
		if parts[i-1] == "tcp" || parts[i-1] == "udp" {
			parts[i] = "0"
		}
	}
	return strings.Join(parts, "/")
}

// freePort reports whether a multiaddr means any port that is free.
func freePort(multiaddr string) bool { return anyPort(multiaddr) == multiaddr }
