package etcd

import (
	"context"
	"errors"

	"github.com/aweigh/aweigh/etcd/auth"
	"github.com/aweigh/aweigh/internal/requestlog"
)

// note records a call, if the node keeps a record. Where etcd refuses a caller without a name, or with a wrong
// password, it has the code of a malformed request.
func (s *service) note(ctx context.Context, call string, request any, err error) {
	if errors.Is(err, auth.ErrUserEmpty) || errors.Is(err, auth.ErrAuthFailed) {
		err = requestlog.Refusal{Cause: err}
	}
	s.requests.Note(ctx, "etcd", call, request, sights[call], err)
}
