package keytree

import "math/bits"

// same is what differ says of equal keys.
const same = ^uint32(0)

// differ is the first bit in which keys differ.
func differ(a, b []byte) uint32 { return differFrom(a, b, 0) }

// differFrom is differ for keys whose first bytes are alike.
func differFrom(a, b []byte, from int) uint32 {
	n := min(len(a), len(b))
	for i := from; i < n; i++ {
		if x := a[i] ^ b[i]; x != 0 {
			return uint32(9*i + 1 + bits.LeadingZeros8(x))
		}
	}
	if len(a) == len(b) {
		return same
	}
	return uint32(9 * n)
}

// bit is a bit of a key.
func bit(key []byte, at uint32) byte {
	i, j := int(at/9), int(at%9)
	switch {
	case i >= len(key):
		return 0
	case j == 0:
		return 1
	}
	return key[i] >> (8 - j) & 1
}
