package api

import (
	"net/http"

	"github.com/aweigh/aweigh/internal/fence"
)

// anyHost stands for the own host of what cannot be reached by a name that was rebound.
const anyHost = "*"

// fenced keeps web pages out, which a browser of an authorized user may send here. own is the host of the address that
// was configured; refused is as in fence.Fence.
func fenced(own string, refused func(page bool), h http.Handler) http.Handler {
	f := fence.Fence{Port: "API", Hosts: "loopback addresses and to the host of --api-listen", Refused: refused}
	if own != anyHost {
		f.Knows = func(host string) bool { return fence.Known(host, own) }
	}
	return f.Around(h)
}
