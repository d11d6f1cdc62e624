// Package api serves the API of a node over HTTP: Connect, gRPC, gRPC-Web and
// plain JSON on one port (connectrpc.com/connect). The messages are defined in
// aweigh/v1/aweigh.proto.
//
// There is no authentication yet: every client that reaches the port can write in the
// node's name. So a Server listens on loopback addresses unless configured otherwise.
//
// Errors carry a Connect code and, as their detail, a Problem for programs.
package api
