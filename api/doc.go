// Package api serves the API of a node over HTTP: Connect, gRPC, gRPC-Web and
// plain JSON on a Unix socket, and on a port (connectrpc.com/connect). The messages are defined in
// aweigh/v1/aweigh.proto.
//
// A client that is served can read and write in the node's name. A socket serves the user of the process and root; a
// port serves clients with certificates, or, where Config.TLS is nil, every client that reaches it.
//
// Errors carry a Connect code and, as their detail, a Problem for programs.
package api
