// Package aweighv1connect holds the client and the handler of the API of a node,
// generated from aweigh.proto.
package aweighv1connect
