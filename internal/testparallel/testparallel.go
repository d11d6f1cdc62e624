// Package testparallel is for packages whose tests wait for most of their time.
package testparallel

import (
	"flag"
	"runtime"
	"strconv"
)

// Waiting runs two tests for each processor at a time, as the tests of the package wait for most of their time.
// A TestMain calls it first. The flag -parallel, if given, holds.
func Waiting() { atATime(2) }

// Idle is Waiting for a package whose tests compute next to nothing: it runs ten tests for each processor at a time.
func Idle() { atATime(10) }

func atATime(each int) {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if given {
		return
	}
	if err := flag.Set("test.parallel", strconv.Itoa(each*runtime.GOMAXPROCS(0))); err != nil {
		panic(err) // no test binary
	}
}
