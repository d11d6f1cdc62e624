package lineage

// Bounds set how a Log divides its stored entries. Logs with equal stored forms need equal Bounds.
type Bounds struct {
	Entries int `least:"1"` // in one pair
	Hashes  int `least:"1"` // in one pair
}

// DefaultBounds are those of a Log that is given no others, and the largest that can be read.
func DefaultBounds() Bounds { return Bounds{Entries: entriesInRun, Hashes: hashesInRun} }

// Within sets other bounds for entries that are appended later. It returns the log.
func (l *Log) Within(b Bounds) *Log {
	l.bounds = b
	return l
}
