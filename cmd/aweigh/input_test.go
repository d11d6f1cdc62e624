package main

import (
	"bytes"
	"context"
	"os"
	"strings"
	"testing"
)

// TestInterruptedReadsEnd: a command that waits for its input ends at a signal, and does not look as if it were done.
func TestInterruptedReadsEnd(t *testing.T) {
	in, open, err := os.Pipe() // nothing is written to it
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	defer open.Close()
	ctx, interrupt := context.WithCancel(t.Context())
	var out, said bytes.Buffer
	code := make(chan int, 1)
	go func() { code <- (&app{in: in, out: &out, err: &said}).run(ctx, []string{"ballot", "inspect", "-"}) }()
	interrupt()
	if c := <-code; c != exitInterrupted || !strings.Contains(said.String(), "interrupted") {
		t.Errorf("code %d, %q", c, said.String())
	}
}
