// Package fence tells requests of web pages from those of programs. A browser reaches what listens on its machine, so a
// port that acts for every request must not answer a page of another host: neither one whose name was made to point to
// the port's address (DNS rebinding), which the Host header shows, nor one that sends a request to another site, which
// the Origin header shows (Fetch Standard, section 3.2).
package fence

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
)

// Known reports whether a request may name the host: a loopback one, the one
// that is listened on, or, where that is every address, any address. No name can
// be rebound to pass for an address.
func Known(host, own string) bool {
	if host == own || host == "localhost" {
		return true
	}
	a, err := netip.ParseAddr(host)
	if err != nil {
		return false
	}
	listened, err := netip.ParseAddr(own)
	return a.Unmap().IsLoopback() || own == "" || err == nil && listened.IsUnspecified()
}

// foreign reports whether a web page of another host sent the request.
func foreign(r *http.Request) bool {
	for _, origin := range r.Header.Values("Origin") {
		if u, err := url.Parse(origin); err != nil || u.Host == "" || !strings.EqualFold(u.Host, r.Host) {
			return true
		}
	}
	return false
}

// Hostname is the host of host:port, or of a host alone, in lower case.
func Hostname(address string) string {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		host = strings.Trim(address, "[]")
	}
	return strings.ToLower(strings.TrimSuffix(host, "."))
}

// Fence is what keeps web pages of other hosts from a port.
type Fence struct {
	Port    string                 // what it is called in refusals
	Hosts   string                 // to which it answers, in words
	Knows   func(host string) bool // whether it does; nil: to all, as under TLS the certificate names others
	Refused func(page bool)        // hears of each refusal: of a page of another host, or of a host
}

// Around refuses what the fence keeps out, and hands on all else.
func (f Fence) Around(h http.Handler) http.Handler {
	refuse := func(w http.ResponseWriter, page bool, text string) {
		f.Refused(page)
		http.Error(w, "aweigh: this "+f.Port+" answers "+text, http.StatusForbidden)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case f.Knows != nil && !f.Knows(Hostname(r.Host)):
			refuse(w, false, "to "+f.Hosts+", not to the Host of this request")
		case foreign(r):
			refuse(w, true, "no web pages of other hosts, and the Origin of this request is one")
		default:
			h.ServeHTTP(w, r)
		}
	})
}
