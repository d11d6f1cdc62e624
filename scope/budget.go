package scope

// Ranges inside transactions are executed by every node, in a block, so what they
// look at is bounded, for each mutation and for each block. The counts are of
// versions, old ones included, and of the bytes of their records. All nodes must
// have the same bounds.
const (
	mutationVisits = 20_000
	mutationBytes  = 16 << 20
	blockVisits    = 50_000
	blockBytes     = 64 << 20
)

// budget is what may still be looked at.
type budget struct{ visits, bytes int }

func (b *budget) take(visits, bytes int) bool {
	b.visits -= visits
	b.bytes -= bytes
	return b.visits >= 0 && b.bytes >= 0
}

// spend charges a mutation for versions and bytes that it looks at.
func (x *execution) spend(visits, bytes int) (failure error) {
	mine, all := x.mine.take(visits, bytes), x.all.take(visits, bytes)
	if !mine || !all {
		return ErrTooMuch
	}
	return nil
}

// afford charges a mutation for looking at the keys [key, end), before it does.
// The failure is ErrTooMuch if that is more than it, or its block, may.
func (x *execution) afford(key, end []byte) (failure, err error) {
	one := len(end) == 0 // then the newest version alone is looked at
	from, to := x.space.versions(key, end)
	err = x.r.Scan(from, to, false, func(k, record []byte) bool {
		failure = x.spend(1, len(k)+len(record))
		return failure == nil && !one
	})
	return failure, err
}
