// Package api serves the API of a node over HTTP: Connect, gRPC, gRPC-Web and
// plain JSON on one port (connectrpc.com/connect). The messages are defined in
// aweigh/v1/aweigh.proto.
package api

//go:generate protoc -I . --go_out=. --go_opt=module=github.com/aweigh/aweigh/api --connect-go_out=. --connect-go_opt=module=github.com/aweigh/aweigh/api aweigh/v1/aweigh.proto
