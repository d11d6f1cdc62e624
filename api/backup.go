package api

import (
	"context"
	"errors"
	"fmt"
	"io"

	"connectrpc.com/connect"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/node"
)

// backupPart is how much of a file one message of a backup holds, in bytes.
const backupPart = 1 << 20

// Backup implements aweighv1connect.NodeHandler.
func (s *service) Backup(ctx context.Context, _ *connect.Request[aweighv1.BackupRequest], out *connect.ServerStream[aweighv1.BackupResponse]) error {
	head := s.at.Overview().Head
	err := s.node.Backup(func(files []node.BackupFile) error {
		first := &aweighv1.BackupResponse{Header: s.read(head, false)}
		for _, f := range files {
			first.TotalBytes += uint64(f.Size)
		}
		if err := out.Send(first); err != nil {
			return err
		}
		for _, f := range files {
			if err := sendFile(ctx, f, out); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil { // and the copy is gone
		err = out.Send(&aweighv1.BackupResponse{Done: true})
	}
	return problem(err)
}

// sendFile sends a file in parts, an empty one too.
func sendFile(ctx context.Context, f node.BackupFile, out *connect.ServerStream[aweighv1.BackupResponse]) error {
	r, err := f.Open()
	if err != nil {
		return fmt.Errorf("api: backup: %w", err)
	}
	defer r.Close()
	buf := make([]byte, backupPart)
	for left, first := f.Size, true; left > 0 || first; first = false {
		n, err := io.ReadFull(r, buf[:min(left, backupPart)])
		if err != nil {
			return fmt.Errorf("api: backup: %s: %w", f.Name, err)
		}
		if err := errors.Join(ctx.Err(), out.Send(&aweighv1.BackupResponse{File: f.Name, Data: buf[:n]})); err != nil {
			return err
		}
		left -= int64(n)
	}
	return nil
}
