// Package auth knows the users of etcd's API: what their roles permit, the tokens and passwords by which a node
// recognizes them, and how users and roles change. They are part of the root scope's state (scope.Access). Package etcd
// holds requests against them, and serves the calls that change them. Errors have etcd's codes and texts.
package auth
