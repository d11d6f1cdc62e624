package auth

import (
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Etcd's errors about users and roles.
var (
	ErrDenied          = status.Error(codes.PermissionDenied, "etcdserver: permission denied")
	ErrTooManyRequests = status.Error(codes.ResourceExhausted, "etcdserver: too many requests")
	ErrUserEmpty       = status.Error(codes.InvalidArgument, "etcdserver: user name is empty")
	ErrUserNotFound    = status.Error(codes.FailedPrecondition, "etcdserver: user name not found")
	ErrRoleNotFound    = status.Error(codes.FailedPrecondition, "etcdserver: role name not found")
	// ErrTokensOfUsers refuses callers by a token while users are not enabled: which of them may do what is not known
	// then.
	ErrTokensOfUsers = status.Error(codes.PermissionDenied, "aweigh: callers with a token have the rights of their "+
		"users, and users are not enabled: add users and enable them, with etcdctl")
	errInvalidToken = status.Error(codes.Unauthenticated, "etcdserver: invalid auth token")
	errOldRevision  = status.Error(codes.InvalidArgument, "etcdserver: revision of auth store is old")
	errTimeout      = status.Error(codes.Unavailable, "etcdserver: request timed out")
)
