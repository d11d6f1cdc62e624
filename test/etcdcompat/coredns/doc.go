// Package coredns runs the etcd plugin of CoreDNS, as it is, on a node that serves etcd's API. It is a module of its
// own, so that what CoreDNS takes does not reach the program.
package coredns
