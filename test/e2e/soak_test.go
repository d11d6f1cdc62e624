package e2e

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
)

const (
	soakClients = 16
	soakKeys    = 2000
	soakValue   = 1 << 10
	soakKept    = 1000 // revisions, when it compacts
)

// sample is what a node that runs all the time takes.
type sample struct {
	at                 time.Duration
	memory, heap, disk float64 // bytes
	goroutines, height float64
	writes             uint64
}

// TestSoak writes over and over to the same keys, compacts, and restarts and kills all nodes but
// one in turn, for as long as AWEIGH_SOAK says, such as 30m. Memory and goroutines of the
// one must not grow.
func TestSoak(t *testing.T) {
	lasts, err := time.ParseDuration(os.Getenv("AWEIGH_SOAK"))
	if err != nil {
		t.Skip("AWEIGH_SOAK is not set to a duration")
	}
	n := newNetwork(t, 4, false)
	n.prune()
	n.start()
	done := make(chan struct{})
	var all sync.WaitGroup
	var wrote, failed atomic.Uint64
	var revision atomic.Int64
	for i := range soakClients {
		c, value := n.dial(0, 1, 2, 3), strings.Repeat("v", soakValue)
		all.Go(func() {
			pause := time.NewTicker(20 * time.Millisecond)
			defer pause.Stop()
			for {
				select {
				case <-done:
					return
				case <-pause.C:
				}
				ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
				r, err := c.Put(ctx, putOf(fmt.Sprintf("/soak/%d/%d", i, rand.IntN(soakKeys/soakClients)), value))
				cancel()
				if err != nil {
					failed.Add(1)
					continue
				}
				wrote.Add(1)
				revision.Store(r.Header.Revision)
			}
		})
	}
	keeper := n.dial(0)
	began, samples := time.Now(), []sample(nil)
	for turn := 0; time.Since(began) < lasts; turn++ {
		<-time.After(lasts / 60)
		if to := revision.Load() - soakKept; to > 0 {
			if _, err := keeper.Compact(within(t, 30*time.Second), &aweighv1.CompactRequest{Revision: to}); err != nil {
				t.Errorf("compact to %d: %v", to, err)
			}
		}
		p := n.nodes[1+turn%3]
		if turn%2 == 0 {
			p.signal(sigKill)
		} else if code := p.signal(sigTerm); code != 0 {
			t.Errorf("%s ended with %d", p.name, code)
		}
		p.start()
		s := n.nodes[0].sampled(t)
		s.at, s.writes = time.Since(began).Round(time.Second), wrote.Load()
		t.Logf("%8v: %d writes, height %.0f; memory %.0f MiB, heap %.0f MiB, %.0f goroutines, disk %.0f MiB", s.at, s.writes, s.height,
			s.memory/(1<<20), s.heap/(1<<20), s.goroutines, s.disk/(1<<20))
		samples = append(samples, s)
	}
	close(done)
	all.Wait()
	n.agreed(30 * time.Second)
	t.Logf("%d writes, %d failed", wrote.Load(), failed.Load())
	if wrote.Load() == 0 || failed.Load() > wrote.Load()/1000 {
		t.Fatalf("%d writes, and %d failed", wrote.Load(), failed.Load())
	}
	early, late := samples[len(samples)/4:len(samples)/2], samples[len(samples)*3/4:]
	for _, x := range []struct {
		what string
		of   func(sample) float64
		most float64 // of what it was
	}{
		{"memory", func(s sample) float64 { return s.memory }, 1.3},
		{"goroutines", func(s sample) float64 { return s.goroutines }, 1.1},
	} {
		was, is := middle(early, x.of), middle(late, x.of)
		t.Logf("%s: %.0f in the second quarter, %.0f in the last", x.what, was, is)
		if is > was*x.most {
			t.Errorf("%s grew from %.0f to %.0f", x.what, was, is)
		}
	}
}

func middle(all []sample, of func(sample) float64) float64 {
	var values []float64
	for _, s := range all {
		values = append(values, of(s))
	}
	slices.Sort(values)
	return values[len(values)/2]
}

// sampled is what the node takes now.
func (p *process) sampled(t *testing.T) (s sample) {
	t.Helper()
	req, err := http.NewRequestWithContext(within(t, 10*time.Second), http.MethodGet, "http://"+p.api+"/metrics", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	req.Close = true
	r, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	metric := func(name string) (sum float64) {
		for _, m := range regexp.MustCompile(`(?m)^`+name+`(?:\{[^}]*\})? (\S+)$`).FindAllSubmatch(text, -1) {
			x, err := strconv.ParseFloat(string(m[1]), 64)
			if err != nil {
				t.Fatal(err)
			}
			sum += x
		}
		if sum == 0 {
			t.Errorf("no metric %s", name)
		}
		return sum
	}
	return sample{
		memory: float64(p.memory()), heap: metric("go_memstats_heap_inuse_bytes"), goroutines: metric("go_goroutines"),
		disk: metric("aweigh_store_disk_bytes"), height: metric("aweigh_height"),
	}
}
