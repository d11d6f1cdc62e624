package scenario

import (
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
	"pgregory.net/rapid"
)

func TestShareReadsDecimalsPercentsAndFractions(t *testing.T) {
	for text, want := range map[string]Share{
		"0": 0, "1": Whole, "0.05": 50_000, "5%": 50_000, "1/3": 333_333, "2/3": 666_667, "0.5": Whole / 2,
		"100%": Whole, "0.000001": 1, "0.0001%": 1, "1/1000000": 1, "12.5%": 125_000, "1.0": Whole, "0/7": 0, "7/7": Whole,
	} {
		if got, err := parseShare(text); err != nil || got != want {
			t.Errorf("%s: %d, %v, want %d", text, uint32(got), err, want)
		}
	}
}

func TestShareRefusesNonsense(t *testing.T) {
	for text, why := range map[string]string{
		"": "no share", "2": "no share", "101%": "no share", "1.000001": "no share", "-0.1": "no share", "+1": "no share",
		".5": "no share", "1.": "no share", "1e-3": "no share", "5 %": "no share", "%": "no share", "0,5": "no share",
		"3/2": "no share", "1/0": "no share", "1/": "no share", "/2": "no share", "1/2/3": "no share", "0x1": "no share",
		"0.0000001": "more than 6 digits", "0.00001%": "more than 4 digits", "0.abcdefgh": "no share",
		"1/1000001": "finer than a millionth", "99999999999999999999999/1": "no share",
	} {
		if got, err := parseShare(text); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%q: %v, %v, want an error with %q", text, got, err, why)
		}
	}
}

func TestShareReadsWhatItPrints(t *testing.T) {
	for s, want := range map[Share]string{0: "0", 1: "0.0001%", 50_000: "5%", 333_333: "33.3333%", 100_000: "10%", Whole: "1"} {
		if s.String() != want {
			t.Errorf("%d prints %s, want %s", uint32(s), s, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		s := Share(rapid.Uint32Range(0, uint32(Whole)).Draw(t, "share"))
		if got, err := parseShare(s.String()); err != nil || got != s {
			t.Fatalf("%d prints %s, which reads %d, %v", uint32(s), s, uint32(got), err)
		}
		data, err := yaml.Marshal(map[string]Share{"x": s})
		if err != nil || string(data) != "x: "+s.String()+"\n" {
			t.Fatalf("YAML of %s is %q, %v", s, data, err)
		}
		var back map[string]Share
		if err := yaml.Unmarshal(data, &back); err != nil || back["x"] != s {
			t.Fatalf("%q reads %v, %v", data, back, err)
		}
	})
}

func TestShareInYAMLNamesTheLine(t *testing.T) {
	var x struct{ A, B Share }
	err := yaml.Unmarshal([]byte("a: 1\nb: 5\n"), &x)
	if err == nil || !strings.Contains(err.Error(), `line 2: "5" is no share`) {
		t.Errorf("got %v", err)
	}
}
