package votes

import "testing"

// TestMembersAreFound: however many there are, each is found, and no other.
func TestMembersAreFound(t *testing.T) {
	outsider := keyOf(t, Ed25519, 99).Public()
	for n := range 3 * fewMembers {
		var keys []PublicKey
		for i := range n {
			keys = append(keys, keyOf(t, Ed25519, byte(i)).Public())
		}
		set, err := NewKeySet(append(keys, keys...)...)
		if err != nil || set.Len() != n {
			t.Fatalf("%d of %d keys, %v", set.Len(), n, err)
		}
		for _, k := range keys {
			if found, ok := set.Key(k.ID()); !ok || found.String() != k.String() || set.parsed(k.ID()) == nil {
				t.Errorf("of %d keys, %s is found as %s", n, k, found)
			}
		}
		if _, ok := set.Key(outsider.ID()); ok || set.parsed(outsider.ID()) != nil {
			t.Errorf("of %d keys, one is an outsider's", n)
		}
	}
}
