package scope

import (
	"flag"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/aweigh/aweigh/internal/testshort"
)

// checkSlow checks a property of which one check takes half a second. Without -rapid.checks it makes a few; many
// reports that it made more, enough to meet rare cases.
func checkSlow(t *testing.T, property func(*rapid.T)) (many bool) {
	t.Helper()
	checks := flag.Lookup("rapid.checks").Value
	flag.Visit(func(f *flag.Flag) { many = many || f.Name == "rapid.checks" })
	if !many {
		before := checks.String()
		if err := checks.Set(strconv.Itoa(testshort.Cases(2, 3, 20))); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = checks.Set(before) }()
	}
	rapid.Check(t, property)
	return many && !testing.Short()
}
