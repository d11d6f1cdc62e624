package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/aweigh/aweigh/internal/show"
	"github.com/aweigh/aweigh/sim"
)

// meter shows a command's progress: on a terminal in one line that is written
// again and again, elsewhere in a line every two seconds.
type meter struct {
	out      io.Writer
	terminal bool
	quiet    bool
	last     time.Time // the last output, or the beginning
	open     bool      // the line stands there
}

// meter is for a command, on standard error.
func (a *app) meter(c *cobra.Command) *meter {
	quiet, _ := c.Flags().GetBool("quiet")
	p := &meter{out: a.err, quiet: quiet, last: time.Now()}
	if f, ok := a.err.(*os.File); ok && os.Getenv("TERM") != "dumb" {
		info, err := f.Stat()
		p.terminal = err == nil && info.Mode()&os.ModeCharDevice != 0
	}
	return p
}

// tell writes a line that the next one replaces, unless it is too early for one.
func (p *meter) tell(line func() string) {
	every := 2 * time.Second
	if p.terminal {
		every = 100 * time.Millisecond
	}
	now := time.Now()
	if p.quiet || now.Sub(p.last) < every {
		return
	}
	p.last = now
	if !p.terminal {
		fmt.Fprintln(p.out, line())
		return
	}
	fmt.Fprintf(p.out, "\r\x1b[K%s", line())
	p.open = true
}

// stay makes room for lines that stay.
func (p *meter) stay() io.Writer {
	if p.open {
		fmt.Fprint(p.out, "\r\x1b[K")
		p.open = false
	}
	if p.quiet {
		return io.Discard
	}
	return p.out
}

// run prints the progress of a run.
func (p *meter) run(s sim.Progress) {
	p.tell(func() string {
		line := fmt.Sprintf("%5.1fs of %s  %s events  heights %d to %d  %s lies told",
			s.Virtual.Seconds(), s.Of, show.Grouped(s.Events), s.Lowest, s.Highest, show.Grouped(s.Attacks))
		if s.Healing {
			line += "  healing"
		}
		return line
	})
}
