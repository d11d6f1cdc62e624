package client

import (
	"context"
	"errors"
	"fmt"

	"connectrpc.com/connect"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
)

// Backup streams a consistent copy of one node's store, the first that can be
// reached: take gets the sizes first, then the parts of the files in order. It
// returns nil only if everything came.
func (c *Client) Backup(ctx context.Context, take func(*aweighv1.BackupResponse) error) error {
	var last error
	began := false
	c.order(ctx, func(e *endpoint) bool {
		last = e.backup(ctx, func(r *aweighv1.BackupResponse) error {
			began = true
			return take(r)
		})
		return began || !errors.Is(last, ErrUnreachable)
	})
	return last
}

func (e *endpoint) backup(ctx context.Context, take func(*aweighv1.BackupResponse) error) error {
	stream, err := e.node.Backup(ctx, connect.NewRequest(&aweighv1.BackupRequest{}))
	if err != nil {
		return translate(err)
	}
	defer stream.Close() // closing an aborted stream reports what ended it already
	for stream.Receive() {
		if err := take(stream.Msg()); err != nil {
			return err
		}
		if stream.Msg().Done {
			return nil
		}
	}
	if err := stream.Err(); err != nil {
		return translate(err)
	}
	return fmt.Errorf("%w: it stopped in the middle of the backup", ErrFailed)
}
