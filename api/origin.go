package api

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
)

// fenced keeps web pages out. There is no authentication, so a browser on this
// machine must not be led here by a page of somebody else: neither by a name that
// was made to point to this address (DNS rebinding), which the Host header shows,
// nor by a request to another site, which the Origin header shows (Fetch
// Standard, section 3.2). listen is the address that was configured, host:port.
func fenced(listen string, h http.Handler) http.Handler {
	own := hostname(listen)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !known(hostname(r.Host), own):
			http.Error(w, "aweigh: this API answers to loopback addresses and to the host of --api-listen, not to the Host of this request",
				http.StatusForbidden)
		case foreign(r):
			http.Error(w, "aweigh: this API answers no web pages of other hosts, and the Origin of this request is one", http.StatusForbidden)
		default:
			h.ServeHTTP(w, r)
		}
	})
}

// known reports whether a request may name the host: a loopback one, the one
// that is listened on, or, where that is every address, any address. No name can
// be rebound to pass for an address.
func known(host, own string) bool {
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

// hostname is the host of host:port, or of a host alone, in lower case.
func hostname(address string) string {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		host = strings.Trim(address, "[]")
	}
	return strings.ToLower(strings.TrimSuffix(host, "."))
}
