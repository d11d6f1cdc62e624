package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/aweigh/aweigh/internal/testshort"
)

// TestDamageMetAtRunTimeStopsANode: the tables under a node that runs are damaged.
// When it reads them it stops and says which, the others go on, and it does not
// start again.
func TestDamageMetAtRunTimeStopsANode(t *testing.T) {
	testshort.SkipUnlessLong(t)
	t.Parallel()
	n := newNetwork(t, 4, false)
	n.start()
	n.fill(0, 2000) // many blocks of tables; a start reads what keys hold now, and not their history
	n.agreed(20 * time.Second)
	p := n.nodes[3]
	for range 2 { // what stands in the log becomes a table at the next start
		p.signal(sigKill)
		p.start()
		until(t, 30*time.Second, p.name+" is back", p.ready)
	}
	p.mayEnd()
	store := filepath.Join(p.dir, "store")
	damaged := make(map[string]bool)
	for k := 0; p.runs() && k < 100; k++ {
		tables, err := filepath.Glob(filepath.Join(store, "*.sst"))
		must(t, err)
		for _, table := range tables { // a compaction that had read them before may write others
			if _, err := os.Stat(table); err == nil && !damaged[table] {
				damaged[table] = true
				flipAll(t, table)
			}
		}
		n.command("audit", "tail", "--api", p.api)
		n.command("history", fmt.Sprintf("/fill/%06d", 19*k), "--api", p.api) // no start has read that
		n.put(0, fmt.Sprintf("/fill/%06d", 19*k))
	}
	p.stopsBecause("the directory is damaged; move it away", "corrupt file "+store, ".sst")
	if _, errs, code := n.command("node", "--data-dir", p.dir); code != exitStore {
		t.Errorf("started again: exit code %d\n%s", code, errs)
	}
	n.put(1, "/after")
}
