package edge

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aweigh/aweigh/node"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/node/referral"
	"github.com/aweigh/aweigh/scope"
)

const (
	replySlack = time.Second      // after its deadline, or its node's end, within which a call must return
	calmGrace  = 25 * time.Second // after the end of all faults, from which on every request must succeed
	calmWait   = 30 * time.Second // for one then
)

// tolerable reports whether an error is one that faults explain.
func tolerable(err error) bool {
	var undecided *node.UndecidedError
	for _, known := range []error{
		node.ErrStopped, node.ErrUnread, machine.ErrBusy, referral.ErrMute, node.ErrNotHeld, node.ErrInstalling, machine.ErrNotTaken, scope.ErrElsewhere,
		scope.ErrFutureRevision, context.DeadlineExceeded, context.Canceled, errKilled,
	} {
		if errors.Is(err, known) {
			return true
		}
	}
	return errors.As(err, &undecided)
}

// calm reports whether faults have been over for so long that everything must work.
func (w *world) calm() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.healed.IsZero() && time.Since(w.healed) >= calmGrace
}

// call asks a node for something, and judges that the call returns in time and how it ends. It reports false if the
// node is down, or something failed.
func (w *world) call(s *seat, what string, within time.Duration, ask func(ctx context.Context, n *node.Node) error) bool {
	s.mu.Lock()
	l := s.life
	s.mu.Unlock()
	if l == nil {
		return false
	}
	calm := w.calm()
	if calm {
		within = max(within, calmWait)
	}
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	began := time.Now()
	done := make(chan error, 1)
	go func() { done <- ask(ctx, l.node) }()
	var err error
	select {
	case err = <-done:
	case <-time.After(within + replySlack):
		w.fail("reply", "%s at %s has no reply %v after its deadline, %v after it began", what, s.name, replySlack, time.Since(began))
		err = <-done
	case <-l.done:
		select {
		case err = <-done:
		case <-time.After(replySlack):
			w.fail("reply", "%s at %s has no reply %v after the node stopped", what, s.name, replySlack)
			err = <-done
		}
	}
	w.count("calls", 1)
	if err == nil {
		w.count("answers", 1)
		return true
	}
	s.mu.Lock()
	same := s.life == l
	s.mu.Unlock()
	switch {
	case calm && same && !errors.Is(err, errGone):
		w.fail("settled", "%s at %s failed after %v, long after the faults were over: %v", what, s.name, time.Since(began), err)
	case !tolerable(err) && !errors.Is(err, errGone):
		w.fail("error", "%s at %s: %v", what, s.name, err)
	}
	return false
}

// errGone is what a client expects: that a lease is over, or a revision compacted.
var errGone = errors.New("edge: gone")

// key is a name below a prefix.
func key(prefix string, number int) string { return fmt.Sprintf("%s%02d", prefix, number) }

func put(key, value string) scope.Op {
	return scope.Op{Kind: scope.OpPut, Key: []byte(key), Value: []byte(value)}
}

// applied is nil for a receipt of what was done.
func applied(r machine.Receipt, err error) error {
	if err == nil && r.Code != scope.Applied && r.Code != scope.Duplicate {
		return fmt.Errorf("it was not done: %v, %w", r.Code, scope.Failure(r.Reason))
	}
	return err
}
