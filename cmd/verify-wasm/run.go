package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/scope"
)

// The exit codes, which are those of "aweigh verify".
const (
	exitOK         = 0
	exitError      = 1
	exitUsage      = 2
	exitUnverified = 7
)

const usage = `verify-wasm --network ID [flags] < PROOF

Verifies a proof that "aweigh get --proof" or "aweigh ls --proof" wrote, and prints
what it shows as JSON, in the form of "aweigh verify -o json".

Exit codes: 0 the proof holds, 7 it does not, 2 a flag makes no sense, 1 another error.

`

// run is the program.
func run(args []string, in io.Reader, out, errs io.Writer, clock func() time.Time) int {
	v, stream, err := parse(args, errs, clock)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return exitOK
	case err != nil:
		fmt.Fprintln(errs, err)
		return exitUsage
	case stream:
		err = v.all(in, out)
	default:
		err = v.one(in, out)
	}
	if err == nil {
		return exitOK
	}
	fmt.Fprintln(errs, err)
	return codeOf(err)
}

func codeOf(err error) int {
	if errors.Is(err, scope.ErrProof) || errors.Is(err, errOld) {
		return exitUnverified
	}
	return exitError
}

// parse reads the command line.
func parse(args []string, errs io.Writer, clock func() time.Time) (v verifier, stream bool, err error) {
	f := flag.NewFlagSet("verify-wasm", flag.ContinueOnError)
	f.SetOutput(errs)
	f.Usage = func() {
		fmt.Fprint(errs, usage)
		f.PrintDefaults()
	}
	network := f.String("network", "", "`ID` of the network, 64 hexadecimal digits, from a source that you trust")
	now := f.String("now", "", "the `time` of verification, as in 2026-01-31T12:00:00Z (default: the clock of the host)")
	trusted := f.String("trusted", "", "a recent roster, `EPOCH:HASH`, as \"aweigh trust verify\" prints it")
	f.DurationVar(&v.atMost, "at-most", 0, "refuse what was the newest longer ago than this")
	f.DurationVar(&v.period, "trusting-period", 90*24*time.Hour,
		"how old the genesis may be if no roster is --trusted; 0: any age")
	f.BoolVar(&stream, "stream", false, "read many proofs, each after its length in 4 bytes, big-endian, and print a line for each")
	if err := f.Parse(args); err != nil {
		return v, stream, err
	}
	if f.NArg() > 0 {
		return v, stream, fmt.Errorf("%q: the proof is read from standard input", f.Arg(0))
	}
	if v.network, err = aweigh.ParseHash(*network); err != nil {
		return v, stream, fmt.Errorf("--network is the identity of a network, 64 hexadecimal digits, not %q", *network)
	}
	if v.now = clock(); *now != "" {
		if v.now, err = time.Parse(time.RFC3339Nano, *now); err != nil {
			return v, stream, fmt.Errorf("--now: %w", err)
		}
	}
	if *trusted != "" {
		t, err := scope.ParseTrusted(*trusted)
		if err != nil {
			return v, stream, fmt.Errorf("--trusted: %w", err)
		}
		v.trusted = &t
	}
	return v, stream, nil
}

// encode writes a value as JSON.
func encode(out io.Writer, indent string, value any) error {
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false)
	e.SetIndent("", indent)
	return e.Encode(value)
}
