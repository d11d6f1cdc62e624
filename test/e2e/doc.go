// Package e2e tests whole networks: the program as it is built, one process for
// each node, real sockets and a real disk. It does to them what can happen to
// programs: they are killed, stopped, paused, cut off, and sent nonsense.
//
//	go test ./test/e2e                  about a minute and a half
//	go test ./test/e2e -e2e.for=10m     disturb the network for longer
//	go test -short ./test/e2e           the checkers alone, without processes
//
// Everything happens on 127.0.0.1 and in temporary directories. Those of a test
// that fails are kept, with the logs of its nodes, and the failure names them.
package e2e
