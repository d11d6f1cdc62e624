package main

import (
	"context"
	"fmt"
	"io"
	"os"
)

// input is standard input. A read of it ends when ctx does, and the first one from a terminal prints what input is
// expected.
type input struct {
	ctx  context.Context
	from io.Reader
	err  io.Writer
	told bool
}

// Read implements io.Reader.
func (i *input) Read(p []byte) (int, error) {
	if !i.told {
		i.told = true
		if f, ok := i.from.(*os.File); ok {
			if info, err := f.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
				fmt.Fprintln(i.err, "aweigh: reading standard input; Ctrl-D ends it")
			}
		}
	}
	type got struct {
		n   int
		err error
	}
	room, done := make([]byte, len(p)), make(chan got, 1)
	go func() {
		n, err := i.from.Read(room)
		done <- got{n, err}
	}()
	select {
	case g := <-done:
		return copy(p, room[:g.n]), g.err
	case <-i.ctx.Done():
		return 0, i.ctx.Err()
	}
}
