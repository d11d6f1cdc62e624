package node

import (
	"errors"

	"github.com/aweigh/aweigh/store/diskstore"
)

// BackupFile is one file of a copy of the node's store.
type BackupFile = diskstore.CopyFile

// ErrNoBackup means that the node's store cannot be copied.
var ErrNoBackup = errors.New("node: this node's store keeps no files that could be copied")

// ErrCopying means that another backup is being made.
var ErrCopying = diskstore.ErrCopying

// Backup calls give with the files of a consistent copy of the store while the node goes on. The copy has no keys, but
// it has the record of what this anchor has signed so far: an anchor that is started from it later may have forgotten
// ballots (P9).
func (n *Node) Backup(give func([]BackupFile) error) error {
	s, ok := n.cfg.Store.(interface {
		Copy(func([]BackupFile) error) error
	})
	if !ok {
		return ErrNoBackup
	}
	return s.Copy(give)
}
