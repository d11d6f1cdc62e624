package scope

import (
	"bytes"
	"fmt"
	"time"

	"github.com/aweigh/aweigh/quorum"
)

// Partition lets anchors that are cut off from a quorum decide provisionally on some keys (P53). They found an island:
// a scope of its own, whose ballots and certificates count nowhere else. Once the scope decides again, it takes what
// the island decided as far as nothing was changed that the island found, and sets the rest aside.
type Partition struct {
	_        struct{}      `cbor:",toarray"`
	Prefix   []byte        // of the keys; no approval covers any of them
	Num, Den uint32        // the share of the whole weight that the members of an island have, at least; above 1/3
	After    time.Duration // for which an anchor has no quorum before it takes part in an island
	Gather   time.Duration // for which the scope waits for other islands once one of them is on record
	Window   time.Duration // of the motions about what was set aside
	Island   bool          // of the policy of an island alone: it decides on these keys, and all else is zero
}

// Bounds of a policy's partitions.
const (
	maxPartitions = 16
	leastAfter    = time.Second
	mostAfter     = 30 * 24 * time.Hour
	mostGather    = 24 * time.Hour
)

// String is like "/ship/: at least 2/5 of the weight, after 10m0s; gather 1m0s, window 168h0m0s".
func (p *Partition) String() string {
	return fmt.Sprintf("%s: at least %d/%d of the weight, after %v; gather %v, window %v", p.Prefix, p.Num, p.Den, p.After, p.Gather, p.Window)
}

// checkPartitions reports whether a policy of a scope that is no island can have its partitions.
func (p *Policy) checkPartitions() error {
	if len(p.Partitions) > maxPartitions {
		return fmt.Errorf("%w: %d partitions, at most %d are taken", ErrInvalid, len(p.Partitions), maxPartitions)
	}
	for i := range p.Partitions {
		q := &p.Partitions[i]
		if i > 0 && (bytes.Compare(p.Partitions[i-1].Prefix, q.Prefix) >= 0 || bytes.HasPrefix(q.Prefix, p.Partitions[i-1].Prefix)) {
			return fmt.Errorf("%w: the partitions of %q and %q are not in order, or one is below the other", ErrInvalid, p.Partitions[i-1].Prefix, q.Prefix)
		}
		if err := q.check(); err != nil {
			return fmt.Errorf("%w: the partition of %q: %w", ErrInvalid, q.Prefix, err)
		}
		for j := range p.Approvals {
			a := &p.Approvals[j]
			if a.ofKeys() && (bytes.HasPrefix(a.Prefix, q.Prefix) || bytes.HasPrefix(q.Prefix, a.Prefix)) {
				return fmt.Errorf("%w: the partition of %q and the approval of %s: an island asks for no approval", ErrInvalid, q.Prefix, a.name())
			}
		}
	}
	return nil
}

func (p *Partition) check() error {
	switch {
	case p.Island:
		return fmt.Errorf("only anchors without a quorum found an island")
	case len(p.Prefix) == 0 || len(p.Prefix) > maxPrefix:
		return fmt.Errorf("a prefix of %d bytes, between 1 and %d are taken", len(p.Prefix), maxPrefix)
	case p.Den == 0 || p.Den > maxApprovalDen || p.Num > p.Den || 3*uint64(p.Num) <= uint64(p.Den):
		return fmt.Errorf("a share of %d/%d; it must be more than 1/3 and at most 1, and the second number at most %d", p.Num, p.Den, maxApprovalDen)
	case p.After < leastAfter || p.After > mostAfter:
		return fmt.Errorf("after %v; it must lie between %v and %v", p.After, leastAfter, mostAfter)
	case p.Gather < leastAfter || p.Gather > mostGather:
		return fmt.Errorf("gather for %v; it must lie between %v and %v", p.Gather, leastAfter, mostGather)
	case p.Window < leastWindow || p.Window > mostWindow:
		return fmt.Errorf("a window of %v; it must lie between %v and %v", p.Window, leastWindow, mostWindow)
	}
	return nil
}

// reached reports whether so much of the whole weight may found an island.
func (p *Partition) reached(weight, total uint64) bool {
	return weight*uint64(p.Den) >= total*uint64(p.Num) // no overflow: quorum.MaxTotal
}

// partition is that of a prefix, nil if the policy has none.
func (p *Policy) partition(prefix []byte) *Partition {
	for i := range p.Partitions {
		if q := &p.Partitions[i]; bytes.Equal(q.Prefix, prefix) && !q.Island {
			return q
		}
	}
	return nil
}

// PartitionOf is the partition that a key falls under, nil if there is none.
func (p *Policy) PartitionOf(key []byte) *Partition {
	for i := range p.Partitions {
		if q := &p.Partitions[i]; bytes.HasPrefix(key, q.Prefix) && !q.Island {
			return q
		}
	}
	return nil
}

// apart is the approval of a patient mutation of keys of one partition, which needs none otherwise; nil if it changes
// others. So what an island decided and the scope set aside can be put to the vote.
func (p *Policy) apart(pl *plan) *Approval {
	var of *Partition
	for _, op := range pl.writes() {
		q := p.PartitionOf(op.Key)
		if q == nil || len(op.End) > 0 || of != nil && of != q {
			return nil
		}
		of = q
	}
	if of == nil || len(pl.inner) > 0 {
		return nil
	}
	a := of.approval()
	return &a
}

// approval is that of patient mutations of its keys.
func (p *Partition) approval() Approval {
	return Approval{Matter: Changes, Prefix: p.Prefix, Num: 1, Den: 2, Window: p.Window}
}

// IsIsland reports whether the policy is that of an island.
func (p *Policy) IsIsland() bool { return len(p.Partitions) == 1 && p.Partitions[0].Island }

// islandPolicy is that of an island with so many members. It asks for no approvals, and lasts for one epoch. Smaller
// mutations leave room for the proof that brings them back into the scope.
func (p Policy) islandPolicy(prefix []byte, members int) Policy {
	p.Approvals, p.Children = nil, Bound{}
	p.Partitions = []Partition{{Prefix: prefix, Island: true}}
	p.EpochBlocks, p.EpochTime, p.Topology = endless, 0, Topology{}
	for _, r := range []*quorum.Rule{&p.Rules.Notarize, &p.Rules.Finalize, &p.Rules.Nullify} {
		r.MinAnchors = min(r.MinAnchors, uint32(members))
	}
	l := &p.Limits
	l.MutationBytes = max(1, l.MutationBytes/islandPart)
	l.BundleBytes = min(l.BundleBytes, l.MutationBytes+1<<10)
	l.KeyBytes, l.ValueBytes = min(l.KeyBytes, l.MutationBytes), min(l.ValueBytes, l.MutationBytes)
	l.JustificationBytes = min(l.JustificationBytes, l.MutationBytes)
	l.TxnOps = min(l.TxnOps, max(1, l.MutationBytes/(8<<10)))
	l.Pending = 0
	return p
}

const (
	endless    = 1 << 62 // blocks of an epoch that no count of blocks ends
	islandPart = 6       // so small a part of a mutation's bytes one of an island may take
)
