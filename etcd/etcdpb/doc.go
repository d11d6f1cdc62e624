// Package etcdpb is the messages and services of etcd's API that package etcd serves:
// those of etcd v3.6, with its field numbers, generated from the files beside this one.
package etcdpb
