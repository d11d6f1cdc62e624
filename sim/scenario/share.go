package scenario

import (
	"fmt"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Share is a part of a whole, in parts per million: 0 to Whole.
type Share uint32

// Whole is the Share that is everything.
const Whole Share = 1_000_000

// parseShare reads 0.05, 5% or 1/3. Decimals finer than a millionth are refused,
// and fractions are rounded to the nearest millionth.
func parseShare(text string) (Share, error) {
	refused := fmt.Errorf("%q is no share between 0 and 1, such as 0.05, 5%% or 1/3", text)
	if over, under, ok := strings.Cut(text, "/"); ok {
		n, nok := digits(over)
		d, dok := digits(under)
		switch {
		case !nok || !dok || d == 0 || n > d:
			return 0, refused
		case d > uint64(Whole):
			return 0, fmt.Errorf("%q is finer than a millionth", text)
		}
		return Share((2*n*uint64(Whole) + d) / (2 * d)), nil
	}
	number, percent := strings.CutSuffix(text, "%")
	places := 6 // after the point
	if percent {
		places = 4
	}
	whole, part, point := strings.Cut(number, ".")
	if len(part) > places {
		if _, ok := digits(part[:places]); ok {
			return 0, fmt.Errorf("%q has more than %d digits after the point", text, places)
		}
		return 0, refused
	}
	n, ok := digits(whole + part + strings.Repeat("0", places-len(part)))
	if !ok || whole == "" || point && part == "" || n > uint64(Whole) {
		return 0, refused
	}
	return Share(n), nil
}

// digits reads a short number without a sign.
func digits(text string) (uint64, bool) {
	if text == "" || len(text) > 18 || strings.Trim(text, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.ParseUint(text, 10, 64)
	return n, err == nil
}

// String is 0, 1, or like 5% and 0.025%.
func (s Share) String() string {
	if s == 0 || s == Whole {
		return strconv.Itoa(int(s / Whole))
	}
	return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%d.%04d", s/10_000, s%10_000), "0"), ".") + "%"
}

// MarshalYAML implements yaml.Marshaler.
func (s Share) MarshalYAML() (any, error) {
	return &yaml.Node{Kind: yaml.ScalarNode, Value: s.String()}, nil
}

// UnmarshalYAML implements yaml.Unmarshaler.
func (s *Share) UnmarshalYAML(n *yaml.Node) (err error) {
	*s, err = parseShare(n.Value)
	if err != nil {
		return &problem{line: n.Line, text: err.Error()}
	}
	return nil
}
