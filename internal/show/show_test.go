package show

import (
	"bytes"
	"strings"
	"testing"

	"pgregory.net/rapid"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/internal/plain"
	"github.com/aweigh/aweigh/scope"
)

func TestTextOfOthersCannotSteerATerminal(t *testing.T) {
	for in, want := range map[string]string{
		"because we can":      "because we can",
		`a "b" é 漢`:           `a "b" é 漢`,
		"\x1b[31mred":         `"\x1b[31mred"`,
		"a\nb":                `"a\nb"`,
		"a\tb":                `"a\tb"`,
		"\u202egnp.exe":       `"\u202egnp.exe"`,
		"\u0085":              `"\u0085"`,
		"\xff":                `"\xff"`,
		"a\ufe0f":             `"a\ufe0f"`,
		"\u3164":              `"\u3164"`,
		"a\U000e0101\u2800\"": `"a\U000e0101\u2800\""`,
	} {
		if got := Line(in); got != want {
			t.Errorf("%q: got %s, want %s", in, got, want)
		}
	}
	if got, want := Text("a\ufe0f\nb"), "a\\ufe0f\nb"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := condition(&scope.Compare{Target: scope.OnValue, Relation: scope.Equal, Key: []byte("/a\ufe0f"), Value: []byte("b\u2800")}),
		`value of "/a\ufe0f" = "b\u2800"`; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := keyRange([]byte("/a\ufe0f"), []byte("/b")), `all keys from "/a\ufe0f" up to "/b"`; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := Text("a\nb \"c\" \x1b[2J"), "a\nb \"c\" \\x1b[2J"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.String().Draw(t, "text")
		for _, r := range Line(s) + strings.ReplaceAll(Text(s), "\n", "") {
			if !plain.Prints(r) {
				t.Fatalf("%q shows %q", s, r)
			}
		}
	})
}

func TestTablesHoldNothingThatDoesNotPrint(t *testing.T) {
	const evil = "x\x1b]0;y\a\nz\ufe0f\u3164"
	var out bytes.Buffer
	p := Printer{Out: &out, Format: Table}
	for _, err := range []error{
		p.History(&aweighv1.HistoryResponse{Entries: []*aweighv1.Entry{{
			Class: evil, AuthorName: evil, Justification: evil, Reason: evil, Key: []byte(evil),
		}}}),
		p.Status(&aweighv1.StatusResponse{
			NetworkName: evil, NodeName: evil, Version: evil, Mode: evil,
			Anchors: []*aweighv1.Anchor{{Name: evil, Address: evil}},
		}),
		p.Range(&aweighv1.RangeResponse{Kvs: []*aweighv1.KeyValue{{Key: []byte(evil), Value: []byte(evil)}}}, false),
		p.Watch(&aweighv1.WatchResponse{Events: []*aweighv1.Event{{Kv: &aweighv1.KeyValue{Key: []byte(evil), Value: []byte(evil)}}}}),
		p.Members([]Member{{Name: evil, Dir: evil}}, 1, "/greeting", Access{CA: evil, Cert: evil, Key: evil}),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if at := strings.IndexFunc(out.String(), func(r rune) bool { return r != '\n' && !plain.Prints(r) }); at >= 0 {
		t.Errorf("it prints %q", out.String()[at:])
	}
	if strings.Contains(out.String(), "\nz") {
		t.Error("a line of its own")
	}
}

// TestHistorySaysWhatNobodyAskedFor: what went with a lease has a reason, and no
// author if it expired.
func TestHistorySaysWhatNobodyAskedFor(t *testing.T) {
	var out bytes.Buffer
	p := Printer{Out: &out, Format: Table}
	author := bytes.Repeat([]byte{0xab}, 32)
	err := p.History(&aweighv1.HistoryResponse{Entries: []*aweighv1.Entry{
		{Revision: 3, Class: "delete", Mutation: make([]byte, 32), Author: make([]byte, 32), Reason: "lease 1f expired"},
		{Revision: 2, Class: "delete", Mutation: author, Author: author, AuthorName: "node1", Reason: "lease 1e was revoked", Justification: "too old"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(out.String(), "\n")
	for i, want := range [][]string{{"REVISION"}, {"-", "lease 1f expired"}, {"node1", "lease 1e was revoked: too old"}} {
		for _, w := range want {
			if !strings.Contains(lines[i], "  "+w) && i > 0 {
				t.Errorf("%q does not say %q", lines[i], w)
			}
		}
	}
}

func TestCountsHaveAPlural(t *testing.T) {
	for want, got := range map[string]string{
		"0 keys": Count(0, "key"), "1 key": Count(1, "key"), "2 entries": Count(2, "entry"), "3 addresses": Count(3, "address"), "4 nodes": Count(4, "node"), "1 watch": Count(1, "watch"), "5 watches": Count(5, "watch"), "6 epochs": Count(6, "epoch"),
	} {
		if got != want {
			t.Errorf("%q in place of %q", got, want)
		}
	}
}

// TestRawIsWhatWasPut holds that raw adds no byte to a value, and value a line break.
func TestRawIsWhatWasPut(t *testing.T) {
	value := []byte("\x00\xff\r\n")
	kv := &aweighv1.KeyValue{Value: value}
	for format, want := range map[Format]string{Raw: string(value), Value: string(value) + "\n"} {
		for name, write := range map[string]func(Printer) error{
			"get":    func(p Printer) error { return p.Range(&aweighv1.RangeResponse{Kvs: []*aweighv1.KeyValue{kv}}, true) },
			"name":   func(p Printer) error { return p.Resolved(&aweighv1.ResolveResponse{Kv: kv}) },
			"put":    func(p Printer) error { return p.Put(&aweighv1.PutResponse{PrevKv: kv}) },
			"watch":  func(p Printer) error { return p.Watch(&aweighv1.WatchResponse{Events: []*aweighv1.Event{{Kv: kv}}}) },
			"signal": func(p Printer) error { return p.Signal(&aweighv1.SignalsResponse{Value: value}) },
		} {
			var out bytes.Buffer
			if err := write(Printer{Out: &out, Format: format}); err != nil || out.String() != want {
				t.Errorf("%s -o %s: %q, %v", name, format, out.String(), err)
			}
		}
	}
}
