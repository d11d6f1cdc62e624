package scope

// due does what the block's time has made due, and what its proofs and ballots on blocks show.
func (x *execution) due() error {
	b := x.block
	due := x.bounds.DueLeast + 2*b.Len()
	if err := x.forget(due); err != nil {
		return err
	}
	if err := x.collect(due); err != nil {
		return err
	}
	if err := x.dropExpiredRedirects(due); err != nil {
		return err
	}
	if err := x.expireLeases(); err != nil {
		return err
	}
	if err := x.judge(b.Proofs); err != nil {
		return err
	}
	x.attend()
	return x.expireMotions()
}

// dueLeast is how many due receipts, and changes to compact, every block works
// off, on top of two for each of its mutations, so that the work never piles up.
const dueLeast = 512
