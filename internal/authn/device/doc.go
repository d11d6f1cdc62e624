// Package device logs a person in at an OpenID Connect issuer from a program without a browser, by the device
// authorization grant (RFC 8628): the program prints a URL and a code, the person enters the code on any device, and
// the program polls the issuer until it gets tokens. The ID token names the person to nodes (package authn/oidc); the
// refresh token gets the next ID token without the person (RFC 6749, section 6; OpenID Connect Core 1.0, section 12).
//
// The program is a public client: it has no secret. The audience of an ID token is the client's ID, so the ID by which
// the issuer knows the program is the network's identity, unless settings of both sides name another.
//
// Tokens are kept in files that only their owner can read, one for each issuer and network. No token is ever part of an
// error or of output.
package device
