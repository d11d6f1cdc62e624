package etcdcompat

import (
	"flag"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
)

var (
	seeds    = flag.Uint64("seed", 1, "seed of the first program")
	programs = flag.Int("programs", 30, "how many programs to run")
)

// TestRandomProgramsAnswerAsEtcd asks one node. With the same history, even
// revisions are the same.
func TestRandomProgramsAnswerAsEtcd(t *testing.T) {
	compare(t, startEtcd(t), startAweigh(t, 1), true)
}

// TestAllNodesTogetherAnswerAsEtcd asks another node at every step.
func TestAllNodesTogetherAnswerAsEtcd(t *testing.T) {
	compare(t, startEtcd(t), startAweigh(t, 4), false)
}

func compare(t *testing.T, etcd, aweigh *system, local bool) {
	begin, count := time.Now(), 0
	for i := range *programs {
		seed := *seeds + uint64(i)
		prefix := fmt.Sprintf("p%06d/", i)
		steps := program(seed, prefix, local)
		var answers [2][]string
		var group errgroup.Group
		for j, s := range []*system{etcd, aweigh} {
			group.Go(func() (err error) {
				if answers[j], err = run(t.Context(), s, prefix, steps); err != nil {
					err = fmt.Errorf("%s: %w", s.name, err)
				}
				return err
			})
		}
		if err := group.Wait(); err != nil {
			for k, x := range steps {
				t.Logf("%3d  %v", k, x)
			}
			t.Fatalf("seed %d: %v%s", seed, err, difference(steps, answers))
		}
		if d := difference(steps, answers); d != "" {
			t.Fatalf("seed %d (repeat with -seed %d -programs 1):%s", seed, seed, d)
		}
		count += len(steps)
	}
	t.Logf("%d programs, %d steps: the same answers, in %s", *programs, count, time.Since(begin).Round(time.Millisecond))
}

// relative is how the numbers look that newest makes.
var relative = regexp.MustCompile(`-1099511627\d{3}`)

// difference tells the first answer that differs, with what led to it.
func difference(steps []step, answers [2][]string) string {
	for i := range max(len(answers[0]), len(answers[1])) {
		var a [2]string
		for j := range a {
			a[j] = "(nothing)"
			if i < len(answers[j]) {
				a[j] = answers[j][i]
			}
		}
		if a[0] == a[1] {
			continue
		}
		var b strings.Builder
		for k := range min(i, len(steps)) {
			fmt.Fprintf(&b, "\n%3d  %v\n     %s", k, steps[k], answers[0][k])
		}
		if i < len(steps) {
			fmt.Fprintf(&b, "\n%3d  %v", i, steps[i])
		}
		fmt.Fprintf(&b, "\netcd   answers %s\naweigh answers %s", a[0], a[1])
		return relative.ReplaceAllStringFunc(b.String(), func(n string) string {
			d, _ := strconv.ParseInt(n, 10, 64)
			return fmt.Sprintf("newest%+d", d-back)
		})
	}
	return ""
}
