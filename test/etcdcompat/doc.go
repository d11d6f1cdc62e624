// Package etcdcompat holds a node against etcd itself: the same programs run
// against both, through etcd's own client library, and every answer must be the
// same, but for the numbers that name a member or a term.
//
// It is a module of its own, because etcd's modules cannot be linked into a node.
// It needs a binary of etcd 3.6, named by AWEIGH_ETCD ("scripts/etcd" builds one),
// and is skipped without. The programs are made from seeds:
//
//	AWEIGH_ETCD=$(scripts/etcd) go -C test/etcdcompat test -v -programs 500
//	AWEIGH_ETCD=$(scripts/etcd) go -C test/etcdcompat test -v -run Programs -seed 1234 -programs 1
//
// It also runs etcd's own tests of its API, with a binary of etcdctl; see package common.
//
//	AWEIGH_ETCDCTL=$(scripts/etcd etcdctl) go -C test/etcdcompat test -v -run CommonTests
package etcdcompat
