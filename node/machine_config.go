package node

import (
	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
)

// MachineConfig is all that a Machine starts from besides its store.
type MachineConfig struct {
	Network        *Network          // shared by all machines of a process
	Key            *votes.PrivateKey // the anchor's key; nil for an observer
	Timing         quorum.Timing
	Pool           int               // bytes of mutations that may wait, instead of Bounds.Pool
	SnapshotBehind aweigh.Height     // lack more blocks than this, and a snapshot is waited for; 0: never
	Keep           aweigh.Height     // so many of the newest blocks stay whatever was compacted; 0: all blocks do
	Awaited        aweigh.Height     // of a snapshot that is being fetched, 0 if none is
	Order          *scope.Revocation // as Ordered says
	Bounds         *Bounds           // DefaultBounds by default
	Life           uint64            // unlike that of any earlier life of this node: random, or counted
}

// withDefaults fills in what is not set.
func (cfg MachineConfig) withDefaults() MachineConfig {
	if cfg.Bounds == nil {
		cfg.Bounds = &defaults
	}
	if cfg.Pool <= 0 {
		cfg.Pool = cfg.Bounds.Pool
	}
	return cfg
}
