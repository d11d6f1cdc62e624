package sim

import (
	"errors"
	"slices"

	"github.com/aweigh/aweigh/node/fsck"
)

// auditStores reads all records of some nodes' disks, of all scopes, and compares each with the network's final
// blocks. That takes a signature's time for each certificate, so a few nodes stand for all.
func (w *World) auditStores() {
	if slices.ContainsFunc(w.scopes, func(c *World) bool { return c.watch.lost }) { // its records may contradict each other
		return
	}
	held, _ := w.held()
	for _, i := range w.ask.Perm(len(held))[:min(len(held), mostStores)] {
		_, err := fsck.Network(w.network, held[i].Disk)
		if errors.Is(err, fsck.ErrUnvouched) { // its newest block replaced more than Bounds.Undo
			continue
		}
		w.holds(Stores, held[i], err == nil, "%v", err)
	}
}

// mostStores bounds the disks that are read in full.
const mostStores = 2
