// Package aweighv1 holds the messages of the API of a node, generated from
// aweigh.proto. What they mean is said there.
package aweighv1
