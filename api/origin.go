package api

import (
	"net/http"

	"github.com/aweigh/aweigh/internal/authn"
	"github.com/aweigh/aweigh/internal/fence"
)

// anyHost stands for the own host of what cannot be reached by a name that was rebound.
const anyHost = "*"

// fenced keeps web pages out, which a browser of an authorized user may send here. own is the host of the address that
// was configured; count counts what is refused, unless it is nil.
func fenced(own string, count func(authn.Kind, authn.Reason), h http.Handler) http.Handler {
	refuse := func(w http.ResponseWriter, why authn.Reason, text string) {
		if count != nil {
			count(authn.None, why)
		}
		http.Error(w, text, http.StatusForbidden)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case own != anyHost && !fence.Known(fence.Hostname(r.Host), own):
			refuse(w, authn.Host, "aweigh: this API answers to loopback addresses and to the host of --api-listen, not to the Host of this request")
		case fence.Foreign(r):
			refuse(w, authn.Origin, "aweigh: this API answers no web pages of other hosts, and the Origin of this request is one")
		default:
			h.ServeHTTP(w, r)
		}
	})
}
