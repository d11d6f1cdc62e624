package machine

import (
	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
)

// MachineConfig is everything that a Machine starts from except its store.
type MachineConfig struct {
	Network        *Network          // shared by all machines of a process
	Key            *votes.PrivateKey // the anchor's key; nil for an observer
	Timing         quorum.Timing
	Pool           int               // bytes of mutations that may wait, instead of Bounds.Pool
	SnapshotBehind aweigh.Height     // if this node lacks more blocks than this, it waits for a snapshot; 0: never
	Keep           aweigh.Height     // how many of the newest blocks stay even if compacted; 0: all blocks stay
	Awaited        aweigh.Height     // height of a snapshot that is being fetched, 0 if there is none
	Order          *scope.Revocation // see Ordered
	TakesDenied    bool              // as an anchor it proposes what the policy denies, as a liar may: for simulations
	Bounds         *Bounds           // DefaultBounds by default
	Life           uint64            // differs from that of every earlier life of this node: random, or counted
}

// withDefaults returns cfg with the defaults for unset fields.
func (cfg MachineConfig) withDefaults() MachineConfig {
	if cfg.Bounds == nil {
		cfg.Bounds = &defaults
	}
	if cfg.Pool <= 0 {
		cfg.Pool = cfg.Bounds.Pool
	}
	return cfg
}
