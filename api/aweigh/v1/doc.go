// Package aweighv1 holds the messages of the API of a node, generated from
// aweigh.proto. That file has their meaning.
package aweighv1
