package scope

import (
	"flag"
	"testing"

	"pgregory.net/rapid"
)

// checkSlow checks a property of which one check takes half a second. Without -rapid.checks it makes 20; many
// reports that it made more, enough to meet rare cases.
func checkSlow(t *testing.T, property func(*rapid.T)) (many bool) {
	t.Helper()
	checks := flag.Lookup("rapid.checks").Value
	flag.Visit(func(f *flag.Flag) { many = many || f.Name == "rapid.checks" })
	if !many {
		before := checks.String()
		if err := checks.Set("20"); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = checks.Set(before) }()
	}
	rapid.Check(t, property)
	return many && !testing.Short()
}
