package api

import (
	"net/http"

	"github.com/aweigh/aweigh/internal/fence"
)

// anyHost stands for the own host of what cannot be reached by a name that was rebound.
const anyHost = "*"

// fenced keeps web pages out, which a browser of an authorized user may send here. own is the host of the address that
// was configured.
func fenced(own string, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case own != anyHost && !fence.Known(fence.Hostname(r.Host), own):
			http.Error(w, "aweigh: this API answers to loopback addresses and to the host of --api-listen, not to the Host of this request",
				http.StatusForbidden)
		case fence.Foreign(r):
			http.Error(w, "aweigh: this API answers no web pages of other hosts, and the Origin of this request is one", http.StatusForbidden)
		default:
			h.ServeHTTP(w, r)
		}
	})
}
