// Package tidy holds no code, only the tests that keep the repository in the
// shape that its documents promise: which package may import which, what pure
// packages may not touch, and how files look. They parse source files and ask
// nothing of the network or the go command.
//
// The rules are the tables in rules_test.go, each row with its reason. Every
// check also runs on a small bad input, so that it is known to be able to fail.
package tidy
