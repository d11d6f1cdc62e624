// Package common lets etcd's own tests of its API run against Aweigh: those of
// package common of go.etcd.io/etcd/tests/v3, which are written against an
// interface of a cluster, so that etcd runs the same ones on processes and inside
// of a program. Here is a cluster of that interface, whose members are nodes,
// processes of their own, asked with etcdctl.
//
// Of the tests, nothing is here. They are read from the module where the go command
// keeps it, and take part in this package as if they stood in this folder, with
// an overlay ("go help build"); that is why it is named as theirs. TestCommonTestsOfEtcd
// of the folder above does so, and holds what passes against exceptions.txt.
package common
