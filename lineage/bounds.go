package lineage

// Bounds say how a Log divides what it stores. Logs that are to be stored alike must have the same.
type Bounds struct {
	Entries int `least:"1"` // in one pair
	Hashes  int `least:"1"` // in one pair
}

// DefaultBounds are those of a Log that is given no others, and the largest that can be read.
func DefaultBounds() Bounds { return Bounds{Entries: entriesInRun, Hashes: hashesInRun} }

// Within lets the log divide what it appends by other bounds. It returns the log.
func (l *Log) Within(b Bounds) *Log {
	l.bounds = b
	return l
}
