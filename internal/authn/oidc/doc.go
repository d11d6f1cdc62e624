// Package oidc recognizes callers by the tokens of OpenID Connect issuers: ID tokens of people, tokens of service
// accounts in Kubernetes, tokens of CI jobs. A token is a signed JSON Web Token (RFC 7519, RFC 7515) for this network:
// its audience is the network's identity, so that a token for one network opens no other. The rules for tokens are
// those of OpenID Connect Core 1.0, section 3.1.3.7, and RFC 8725.
//
// The issuers are a node's settings. A node fetches their keys (RFC 7517) by discovery (OpenID Connect Discovery 1.0,
// section 4), keeps them, and fetches them again from time to time and when a token names a key that it does not know.
// An issuer that is down stops neither the node nor tokens whose keys are known. Keys that were fetched decide who a
// caller is, at this node. They never decide what a block of the chain contains.
//
// A token is never part of an error, a log line or a report.
package oidc
