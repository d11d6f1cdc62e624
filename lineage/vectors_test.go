package lineage_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/aweigh/aweigh/lineage"
)

var update = flag.Bool("update", false, "write testdata/vectors.txt anew")

// TestEncodingsAreThoseOfTheVectors pins the bytes that are hashed. They must
// not change without a new format: other implementations are written from them.
func TestEncodingsAreThoseOfTheVectors(t *testing.T) {
	const name = "testdata/vectors.txt"
	log, store := grown(t, 8)
	var b strings.Builder
	fmt.Fprintf(&b, "# Entry 7 of the log of the tests: canonical CBOR, then the RFC 6962 leaf hash.\n")
	fmt.Fprintf(&b, "entry %x\nleaf %s\n", anEntry(7).Encode(), anEntry(7).Hash())
	fmt.Fprintf(&b, "# Roots of the log's first 0 to 8 entries.\n")
	for n := range 9 {
		root, err := lineage.Open(store, prefix, int64(n)).Root()
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "root %d %s\n", n, root)
	}
	p, _ := log.Prove(5, 7)
	c, _ := log.ProveConsistency(3, 7)
	fmt.Fprintf(&b, "# Entry 5 within 7 entries, and 3 entries within 7.\ninclusion %x\nconsistency %x\n", p.Encode(), c.Encode())
	if *update {
		if err := os.WriteFile(name, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if b.String() != string(want) {
		t.Errorf("the encodings changed:\n%s\nwant:\n%s", b.String(), want)
	}
}
