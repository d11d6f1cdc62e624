package auth

import (
	"fmt"
	"slices"
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
		return len(queue.all) == hashesEach
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
	if len(queue.all) != 0 || len(queue.last) != 0 {
		t.Errorf("%d wait in the end", len(queue.all))
	}
}

// TestHostsTakeTurns: a host waits for one password of each other host, and finds room in a queue that others filled.
// Addresses of one IPv6 network, and connections of this machine, are one host.
func TestHostsTakeTurns(t *testing.T) {
	for name, address := range map[string]string{
		"one address": "192.0.2.%[2]d:1", "one network": "[2001:db8::%[1]x]:1", "this machine": "127.0.0.1:%[1]d", "mapped": "[::ffff:192.0.2.%[2]d]:1",
	} {
		t.Run(name, func(t *testing.T) {
			queue := NewPasswords()
			queue.most = 1
			hold, begun := make(chan struct{}), make(chan string, 2*hashesWaiting)
			var working sync.WaitGroup
			refused := make(chan struct{}, 2*hashesWaiting)
			ask := func(from string) {
				working.Go(func() {
					if err := queue.inTurn(t.Context(), from, func() error { begun <- from; <-hold; return nil }); err == ErrTooManyRequests {
						refused <- struct{}{}
					}
				})
			}
			full := func() int {
				queue.mu.Lock()
				defer queue.mu.Unlock()
				return len(queue.all)
			}
			for i := range hashesWaiting {
				before := full() + len(refused)
				ask(fmt.Sprintf(address, i+1, i/hashesEach+1))
				testwait.Until(t, "it asked", func() bool { return full()+len(refused) > before })
			}
			ask("198.51.100.1:1")
			testwait.Until(t, "another host is in the queue", func() bool {
				queue.mu.Lock()
				defer queue.mu.Unlock()
				return slices.ContainsFunc(queue.all, func(x *turn) bool { return x.host == "198.51.100.1" })
			})
			hosts := make(map[string]bool)
			queue.mu.Lock()
			for _, x := range queue.all {
				hosts[x.host] = true
			}
			queue.mu.Unlock()
			close(hold)
			working.Wait()
			for i := range len(hosts) + 1 {
				if from := <-begun; from == "198.51.100.1:1" {
					return
				} else if i == len(hosts) {
					t.Errorf("another host waited for more than one password of each of %d hosts", len(hosts)-1)
				}
			}
		})
	}
}
