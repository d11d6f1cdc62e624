package scope

import (
	"bytes"
	"testing"
)

// FuzzDecodeGenesis: a genesis has one encoding, and one that passes Check gives
// a roster, a keyring and a first state.
func FuzzDecodeGenesis(f *testing.F) {
	f.Add(newWorld(f).g.Encode())
	f.Fuzz(func(t *testing.T, data []byte) {
		g, err := DecodeGenesis(data)
		if err != nil {
			return
		}
		if !bytes.Equal(g.Encode(), data) {
			t.Fatal("a genesis with two encodings")
		}
		if _, err := g.Check(); err != nil {
			return
		}
		if _, err := g.Epoch(); err != nil {
			t.Fatalf("no roster: %v", err)
		}
		if _, err := g.Keyring(); err != nil {
			t.Fatalf("no keyring: %v", err)
		}
		if _, err := Init(g); err != nil {
			t.Fatalf("no first state: %v", err)
		}
	})
}
