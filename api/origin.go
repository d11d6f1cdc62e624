package api

import (
	"net/http"

	"github.com/aweigh/aweigh/internal/fence"
)

// fenced keeps web pages out, since there is no authentication. listen is the address that was configured, host:port.
func fenced(listen string, h http.Handler) http.Handler {
	own := fence.Hostname(listen)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !fence.Known(fence.Hostname(r.Host), own):
			http.Error(w, "aweigh: this API answers to loopback addresses and to the host of --api-listen, not to the Host of this request",
				http.StatusForbidden)
		case fence.Foreign(r):
			http.Error(w, "aweigh: this API answers no web pages of other hosts, and the Origin of this request is one", http.StatusForbidden)
		default:
			h.ServeHTTP(w, r)
		}
	})
}
