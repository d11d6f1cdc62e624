package etcd

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/aweigh/aweigh/etcd/etcdpb"
	"github.com/aweigh/aweigh/node"
	"github.com/aweigh/aweigh/node/referral"
)

const (
	blobBytes = 32 << 10  // of the file in one message, as in etcd
	spared    = 512 << 20 // bytes of the disk that no snapshot takes
	stalled   = 30 * time.Second
)

// Snapshot implements etcdpb.MaintenanceServer: the keys and leases in the file
// format of etcd, so that etcd's tools read it and etcd starts from it. It is written
// to the disk first, one at a time, since such a file is not written in order.
func (s *maintenanceServer) Snapshot(_ *etcdpb.SnapshotRequest, stream grpc.ServerStreamingServer[etcdpb.SnapshotResponse]) (err error) {
	ctx := stream.Context()
	defer func() { err = statusFor(ctx, err) }()
	select {
	case s.saving <- struct{}{}:
		defer func() { <-s.saving }()
	case <-ctx.Done():
		return ctx.Err()
	case <-s.stopping:
		return node.ErrStopped
	}
	taken, _ := s.size() // values stand in the file once, those of older versions not at all
	if u, err := vfs.Default.GetDiskUsage(s.scratch); err == nil && u.AvailBytes < uint64(taken)+spared {
		return status.Errorf(codes.ResourceExhausted, "aweigh: a snapshot may take %d MiB of the node's disk besides %d MiB to spare, and %d MiB are left; see \"aweigh backup\"",
			taken>>20, spared>>20, u.AvailBytes>>20)
	}
	f, err := os.CreateTemp(s.scratch, "snapshot-*.db")
	if err != nil {
		return fmt.Errorf("etcd: %w", err)
	}
	defer func() {
		_ = f.Close()
		_ = os.Remove(f.Name())
	}()
	var revision int64
	if s.node.Root().LastHead().Delegated > 0 { // before the leases are read: those of the keys are among them then
		if revision, err = s.node.Latest(ctx, everything, everything, true); err != nil {
			return err
		}
	}
	err = s.look(ctx, referral.Keys(), true, func(v *node.View) error {
		all, err := s.keyspaceOf(ctx, v, revision, true)
		if err != nil {
			return err
		}
		revision = all.revision
		return writeBackend(f.Name(), v, all, func() error { return s.goesOn(ctx) })
	})
	if err != nil {
		return err
	}
	var sent atomic.Int64
	done := make(chan error, 1)
	go func() { done <- s.sendFile(stream, f, s.header(revision), &sent) }()
	for last := int64(-1); ; last = sent.Load() {
		timer := time.NewTimer(stalled)
		select {
		case err := <-done:
			timer.Stop()
			return err
		case <-timer.C:
			if sent.Load() == last { // a client that reads nothing delays no other; the goroutine ends with the call
				return status.Error(codes.DeadlineExceeded, "aweigh: the client takes nothing of the snapshot")
			}
		}
	}
}

// goesOn is an error once long work is of no use any more.
func (s *service) goesOn(ctx context.Context) error {
	select {
	case <-s.stopping:
		return node.ErrStopped
	default:
		return ctx.Err()
	}
}

// sendFile sends a file in parts, and its hash.
func (s *maintenanceServer) sendFile(stream grpc.ServerStreamingServer[etcdpb.SnapshotResponse], f *os.File, h *etcdpb.ResponseHeader, sent *atomic.Int64) error {
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("etcd: %w", err)
	}
	left, sum := info.Size(), sha256.New()
	for part := make([]byte, blobBytes); left > 0; {
		n := int(min(left, blobBytes))
		if _, err := io.ReadFull(f, part[:n]); err != nil {
			return fmt.Errorf("etcd: reading a snapshot back: %w", err)
		}
		_, _ = sum.Write(part[:n]) // never fails
		left -= int64(n)
		if err := stream.Send(&etcdpb.SnapshotResponse{Header: h, RemainingBytes: uint64(left), Blob: part[:n], Version: storageVersion}); err != nil {
			return err
		}
		sent.Add(int64(n))
	}
	return stream.Send(&etcdpb.SnapshotResponse{Header: h, Blob: sum.Sum(nil), Version: storageVersion})
}
