package metrics

import "github.com/aweigh/aweigh/internal/authn"

var callers = counter("callers_total", "Requests of clients, by the kind of their credential, and accepted or why it was refused.", "kind", "reason")

// ofCallers emits the counts of credentials that have come.
func ofCallers(c *authn.Counts) source {
	return func(to emit) {
		for x, n := range c.All() {
			send(to, callers, n, x.Kind.String(), x.Reason.String())
		}
	}
}
