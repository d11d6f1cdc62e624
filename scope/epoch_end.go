package scope

import "github.com/aweigh/aweigh"

// clockBlocks returns how many blocks an epoch must have before the clock may end it: with fewer, hardly any ballot
// could be recorded, and no anchor would earn trust.
func (b *Bounds) clockBlocks() uint64 { return 2 * uint64(b.TimelyBlocks) }

// Due reports whether a block of this time ends the epoch: it has as many
// blocks as the policy sets, or is as old, or a decision or a proof of fault
// cannot wait, or the scope has become quiet. No block of an epoch is due before the epoch's own first block is
// on the chain.
func (s *State) Due(at aweigh.Instant) (bool, error) {
	e, err := s.Epoch()
	if err != nil {
		return false, err
	}
	if s.head.Epoch != e.Number && s.head.Block != e.Root { // the block that begins this epoch is still to come
		return false, nil
	}
	if e.Home != nil {
		return false, nil
	}
	blocks, early, err := tallied(s.tally)
	if err != nil {
		return false, err
	}
	p := &e.Policy
	if early || blocks >= p.EpochBlocks || blocks >= s.bounds.clockBlocks() && p.EpochTime > 0 && at >= e.Time.Add(p.EpochTime) {
		return true, nil
	}
	quiet, err := s.asksFrom(e)
	return quiet != 0 && at >= quiet, err
}

// ClockEnds is when the clock ends the epoch, 0 if it does not.
func (s *State) ClockEnds() (aweigh.Instant, error) {
	e, err := s.Epoch()
	if err != nil || e.Home != nil {
		return 0, err
	}
	quiet, err := s.asksFrom(e)
	if err != nil || e.Policy.EpochTime == 0 {
		return quiet, err
	}
	blocks, _, err := tallied(s.tally)
	if err != nil || blocks < s.bounds.clockBlocks() {
		return quiet, err
	}
	return aweigh.Earliest(quiet, e.Time.Add(e.Policy.EpochTime)), nil
}
