package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/client"
	"github.com/aweigh/aweigh/scope"
)

func (a *app) watch() *cobra.Command {
	c := &cobra.Command{
		Use: "watch KEY", Short: "Follow the changes of a key, or of a range of keys", Args: cobra.ExactArgs(1),
		Long: "Prints every change when it is final, until interrupted, or for the time of --timeout: the exit code is\n" +
			"then 4 if there were fewer than --count. With -o json, one object on a line.\n\n" + keyHelp,
		Example: "  aweigh watch / --prefix\n  aweigh watch /greeting --rev 2 --count 1 -o json\n  aweigh watch /ready --count 1 --timeout 30s",
	}
	raw := c.Flags().Bool("raw", false, "take KEY as it is")
	rev := c.Flags().Int64("rev", 0, "from this revision on, and not from now")
	prev := c.Flags().Bool("prev", false, "show the content before")
	count := c.Flags().Int("count", 0, "end after so many changes")
	signals := c.Flags().Bool("signals", false, "follow signals (see aweigh do), and not changes: those that reach the node from now on")
	c.MarkFlagsMutuallyExclusive("signals", "rev")
	c.MarkFlagsMutuallyExclusive("signals", "prev")
	bounds := rangeFlags(c)
	return watched(a.asking(c, func(ctx context.Context, s *session, args []string) error {
		name, err := newest(args[0], *raw, reads)
		if err != nil {
			return err
		}
		req := &aweighv1.WatchRequest{StartRevision: *rev, PrevKv: *prev}
		req.Key, req.RangeEnd = bounds(name.Key())
		if end := req.RangeEnd; len(end) > 0 && !scope.ToEnd(end) && bytes.Compare(req.Key, end) >= 0 {
			return fmt.Errorf("%w: the range from %q to %q is empty", errUsage, req.Key, end)
		}
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		if s.bounded { // not by a deadline: the node would get it, and might end the watch before this side does
			defer time.AfterFunc(s.timeout, func() { cancel(context.DeadlineExceeded) }).Stop()
		}
		if len(req.RangeEnd) == 0 {
			limited, cancel := s.limited(ctx)
			defer cancel()
			if req.Key, _, err = a.led(limited, s, name, true); err != nil {
				return err
			}
		}
		w := watching{app: a, session: s, count: *count}
		if *signals {
			err = w.signals(ctx, req)
		} else {
			err = s.futureOf(ctx, req.Key, w.changes(ctx, req))
		}
		return w.ended(ctx, err)
	}))
}

// watched adds to a command's help until when it watches.
func watched(c *cobra.Command) *cobra.Command {
	timeout := c.Flags().Lookup("timeout")
	timeout.Usage, timeout.DefValue = "how long to watch (default: without end)", "0s"
	return c
}

// watching is a running watch.
type watching struct {
	*app
	*session
	count int  // of what to wait for; 0 if there is no end to it
	seen  int  // of that
	began bool // a node watches
}

var (
	// errEnough ends a watch.
	errEnough = errors.New("enough")
	// errFewer is wrapped when a watch ended before there was enough.
	errFewer = errors.New("not seen")
)

// changes prints the changes of keys.
func (w *watching) changes(ctx context.Context, req *aweighv1.WatchRequest) error {
	return w.Follow(ctx, req, w.count, func(x *aweighv1.WatchResponse) error {
		if x.Created {
			w.began = true
			from := req.StartRevision
			if from == 0 {
				from = x.Header.GetRevision() + 1
			}
			w.tell("watching from revision %d on", from)
		}
		for _, prefix := range x.WaitsFor {
			fmt.Fprintf(w.err, "aweigh: %s has not decided for some seconds; later changes of other scopes wait for it\n", scopeCalled(prefix))
		}
		w.seen += len(x.Events)
		return w.Printer.Watch(x)
	})
}

// signals prints the signals to keys.
func (w *watching) signals(ctx context.Context, req *aweighv1.WatchRequest) error {
	err := w.Client.Signals(ctx, &aweighv1.SignalsRequest{Key: req.Key, RangeEnd: req.RangeEnd}, func(x *aweighv1.SignalsResponse) error {
		if x.Created {
			w.began = true
			w.tell("watching signals from now on")
			return nil
		}
		if err := w.Printer.Signal(x); err != nil {
			return err
		}
		if w.seen++; w.count > 0 && w.seen >= w.count {
			return errEnough
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

// tell reports where the watch begins, to people.
func (w *watching) tell(format string, args ...any) {
	if w.Format == "table" {
		fmt.Fprintf(w.app.err, format+"\n", args...)
	}
}

// ended is the error at a watch's end; --timeout is one only if no node
// answered, or too few changes came.
func (w *watching) ended(ctx context.Context, err error) error {
	switch timeout := context.Cause(ctx); {
	case err == nil || errors.As(err, new(*client.Gone)) || !errors.Is(timeout, context.DeadlineExceeded):
		return err
	case !w.began:
		return fmt.Errorf("no node answers in %s: %w", w.timeout, errLate)
	case w.seen < w.count:
		return fmt.Errorf("%w: %d of %d in %s", errFewer, w.seen, w.count, w.timeout)
	}
	return nil
}
