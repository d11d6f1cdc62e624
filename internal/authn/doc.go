// Package authn finds the caller of a request, alike for all ports: the user at the other end of a Unix socket, the
// name in a certificate that TLS has verified, the subject of an OpenID Connect token (package authn/oidc), a user of
// etcd's API, or an anonymous caller. It decides who the caller is, and not what the caller may do.
//
// A Row asks its authenticators in order, as Kubernetes does. The first that knows a request's credential decides: it
// returns an Identity or a Refusal. A bad credential never makes its caller anonymous. Middleware, Unary, Stream and
// Call put the Identity into the context of a request, and FromContext returns it.
//
// No error, count or log line of this package holds a credential.
package authn
