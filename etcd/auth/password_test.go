package auth

import (
	"sync"
	"testing"

	"github.com/aweigh/aweigh/internal/testwait"
)

// TestPasswordsAreLookedAtInTurn: clients with many requests only keep others of their own
// address waiting.
func TestPasswordsAreLookedAtInTurn(t *testing.T) {
	queue := NewPasswords()
	hold, begun := make(chan struct{}), make(chan struct{}, 100)
	var working sync.WaitGroup
	refused := 0
	for range hashesEach {
		working.Go(func() {
			if err := queue.inTurn(t.Context(), "192.0.2.1:1", func() error { begun <- struct{}{}; <-hold; return nil }); err != nil {
				t.Error(err)
			}
		})
	}
	<-begun
	testwait.Until(t, "all wait", func() bool {
		queue.mu.Lock()
		defer queue.mu.Unlock()
		return queue.all == hashesEach
	})
	for range 10 {
		if err := queue.inTurn(t.Context(), "192.0.2.1:1", func() error { return nil }); err == ErrTooManyRequests {
			refused++
		}
	}
	done := make(chan error, 1)
	go func() { done <- queue.inTurn(t.Context(), "192.0.2.2:1", func() error { return nil }) }()
	close(hold)
	working.Wait()
	if err := <-done; err != nil || refused != 10 {
		t.Errorf("another: %v; %d refused", err, refused)
	}
	if queue.all != 0 || len(queue.waiting) != 0 {
		t.Errorf("%d wait in the end", queue.all)
	}
}
