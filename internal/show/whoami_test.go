package show

import (
	"bytes"
	"strings"
	"testing"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
)

// TestCallersLearnThatTheyHoldTheAnchorsKey: an anonymous caller of an insecure node on its machine may govern.
func TestCallersLearnThatTheyHoldTheAnchorsKey(t *testing.T) {
	for _, c := range []struct {
		of   *aweighv1.WhoAmIResponse
		want bool
	}{
		{&aweighv1.WhoAmIResponse{Identity: "anonymous", AnchorKey: true}, true},
		{&aweighv1.WhoAmIResponse{Identity: "anonymous"}, false},
		{&aweighv1.WhoAmIResponse{Identity: "local:0", Owner: true, AnchorKey: true}, true},
	} {
		var table, document bytes.Buffer
		if err := (Printer{Out: &table, Format: Table}).WhoAmI(c.of); err != nil {
			t.Fatal(err)
		}
		if err := (Printer{Out: &document, Format: JSON}).WhoAmI(c.of); err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(table.String(), "use the anchor's key"); (n == 1) != c.want || n > 1 {
			t.Errorf("%v:\n%s", c.of, &table)
		}
		if strings.Contains(document.String(), `"anchor_key": true`) != c.want {
			t.Errorf("%v:\n%s", c.of, &document)
		}
	}
}
