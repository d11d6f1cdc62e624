package requestlog

// Sight states what the requests of a method show their caller: whether a request reads, and ranges of keys that it is
// about beside those in fields that are named key and range_end, or prefix. Each port has a table of them. A method
// that has none reads.
type Sight func(request any) (reads bool, more []Keys)

// Reads is the Sight of methods whose every request reads.
func Reads(any) (bool, []Keys) { return true, nil }

// Writes is the Sight of methods whose requests show no keys and no content: those that only write, and those about the
// network.
func Writes(any) (bool, []Keys) { return false, nil }

// of returns the ranges of keys that a request is about, at most maxKeys, and whether it reads.
func (s Sight) of(request any) (keys []Keys, reads bool) {
	keys = keysOf(request)
	if s == nil {
		return keys, request != nil
	}
	reads, more := s(request)
	return append(keys, more[:min(len(more), maxKeys-len(keys))]...), reads
}
