package txntext

import (
	"errors"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
)

func TestTransactionsSayWhatTheyMean(t *testing.T) {
	got, err := Parse(strings.NewReader(`
		# comment
		if
		  version /a = 0   # another
		  value "odd key" != "two words"
		then
		  put org@wikipedia x
		  get /p prefix
		else
		  del "\xff" prefix
	`))
	if err != nil {
		t.Fatal(err)
	}
	want := &aweighv1.TxnRequest{
		Compare: []*aweighv1.Compare{
			{Target: aweighv1.Compare_TARGET_VERSION, Relation: aweighv1.Compare_RELATION_EQUAL, Key: []byte("/a")},
			{Target: aweighv1.Compare_TARGET_VALUE, Relation: aweighv1.Compare_RELATION_NOT_EQUAL, Key: []byte("odd key"), Value: []byte("two words")},
		},
		Success: []*aweighv1.Op{
			{Op: &aweighv1.Op_Put{Put: &aweighv1.PutRequest{Key: []byte("/org/wikipedia"), Value: []byte("x")}}},
			{Op: &aweighv1.Op_Range{Range: &aweighv1.RangeRequest{Key: []byte("/p"), RangeEnd: []byte("/q")}}},
		},
		Failure: []*aweighv1.Op{
			{Op: &aweighv1.Op_Delete{Delete: &aweighv1.DeleteRequest{Key: []byte("\xff"), RangeEnd: []byte{0}}}},
		},
	}
	if !proto.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

func TestMistakesAreNamedWithTheirLine(t *testing.T) {
	for text, want := range map[string]string{
		"put /a b":                    "line 1",
		strings.Repeat("#", maxBytes): "line 1 has 4194304 bytes or more",
		"then\nput /a":                "line 2",
		"then\nput /a b c":            "line 2",
		"then\nthen":                  "line 2",
		"else\nif":                    "line 2",
		"if\nversion /a = x":          "not a number",
		"if\nversion /a ~ 1":          "none of = != < >",
		"if\nage /a = 1":              "none of version",
		"if\nversion /a":              "four words",
		"then\nget /a suffix":         "prefix",
		"then\nfrob /x 1":             `"frob" is none of put, get and del`,
		"then\nmove /a":               "none of put, get and del",
		"then\nput \"/a b":            "quote",
		"then\nput nokey b":           "quotes",
		"then\nput org@wiki.v3 b":     "version",
		"then\nput read /a":           "quotes",
		"then\n\n# c\nget":            "line 4",
		"if\nvalue \"\" = something":  "empty key",
	} {
		_, err := Parse(strings.NewReader(text))
		if !errors.Is(err, ErrSyntax) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %s", text, err, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("if\nversion /a = 0\nthen\nput /a \"x\\\"y\"\nelse\nget /a prefix")
	f.Fuzz(func(t *testing.T, text string) {
		if _, err := Parse(strings.NewReader(text)); err != nil && !errors.Is(err, ErrSyntax) {
			t.Fatal(err)
		}
	})
}
