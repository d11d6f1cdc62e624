// Package testshort decides how much a test does: little with go test -short, which runs what finishes within seconds;
// more by default, in minutes; and all with AWEIGH_TESTS=all, as .ci/run does, or where -run names a test.
package testshort

import (
	"flag"
	"os"
	"strconv"
	"testing"
)

// All reports whether tests do all that they can.
func All() bool { return os.Getenv("AWEIGH_TESTS") == "all" && !testing.Short() }

// Skip skips a test that takes seconds if the tests run with -short.
func Skip(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("takes seconds, and -short was given")
	}
}

// Long reports whether tests run that take many seconds: with AWEIGH_TESTS=all, and if -run names tests.
func Long() bool {
	return All() || !testing.Short() && flag.Lookup("test.run").Value.String() != ""
}

// SkipUnlessLong skips a test that takes many seconds, unless Long.
func SkipUnlessLong(t testing.TB) {
	t.Helper()
	if !Long() {
		t.Skip("takes many seconds: AWEIGH_TESTS=all runs it, or -run with its name")
	}
}

// Cases is how many cases a test draws: few with -short, some by default, all with AWEIGH_TESTS=all.
func Cases[N int | uint64](few, some, all N) N {
	switch {
	case testing.Short():
		return few
	case All():
		return all
	}
	return some
}

// FewerDraws makes properties of rapid draw 40 cases by default, and all that rapid draws, 100, with AWEIGH_TESTS=all.
// A TestMain calls it first. The flag -rapid.checks, if given, holds; with -short, rapid draws a fifth.
func FewerDraws() {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "rapid.checks" })
	if checks := flag.Lookup("rapid.checks"); checks != nil && !given && !All() {
		_ = checks.Value.Set(strconv.Itoa(40))
	}
}
