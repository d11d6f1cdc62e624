package show

import (
	"bytes"
	"strings"
	"testing"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/scope"
)

// TestPrefixesOfAuthorsInJSON: no prefixes stand for all keys, so prefixes that are no text do not stand as none.
func TestPrefixesOfAuthorsInJSON(t *testing.T) {
	for want, prefixes := range map[string][][]byte{
		`"prefixes": [],`:                     nil,
		`"prefixes": ["/a/"],`:                {[]byte("/a/")},
		`"prefixes_base64": ["/w==","/w=="],`: {{0xff}, {0xff}},
	} {
		var out bytes.Buffer
		p := Printer{Out: &out, Format: JSON}
		if err := p.Authors(&aweighv1.Header{}, []scope.Author{{Name: "a", Who: scope.Anyone, Prefixes: prefixes}}, nil); err != nil {
			t.Fatal(err)
		}
		text := strings.Join(strings.Fields(out.String()), " ")
		got := strings.NewReplacer("[ ", "[", " ]", "]", `", "`, `","`).Replace(text)
		if !strings.Contains(got, want) || strings.Count(got, `"prefixes`) != 1 {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
