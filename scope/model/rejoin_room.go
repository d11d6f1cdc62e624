package model

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"github.com/aweigh/aweigh"
)

// giveWay drops the island of the oldest base, of several the first by identity, unless the one that comes is older, or
// the scope may still take changes of that island.
func (m *Model) giveWay(id aweigh.ScopeID, is *isle) error {
	var oldest aweigh.ScopeID
	var old *isle
	for _, o := range m.islandIDs() {
		if i := m.islands[o]; old == nil || i.Height < old.Height {
			oldest, old = o, i
		}
	}
	if is.Height < old.Height || is.Height == old.Height && bytes.Compare(id[:], oldest[:]) < 0 {
		return errors.New("scope: so many islands of newer bases are on record that this one is too old to be taken: put its changes again")
	}
	if until := m.waitedFor(old); old.Next < old.Size && m.block.Header.Time < until {
		return fmt.Errorf("scope: %d islands are on record, and the oldest is not complete: bring its rest, or try again after %s",
			len(m.islands), until.Time().UTC().Format(time.RFC3339))
	}
	if failure := m.spend(8 * int64(1+len(old.aside))); failure != nil {
		return failure
	}
	delete(m.islands, oldest)
	return nil
}

// waitedFor is until when other islands wait for one.
func (m *Model) waitedFor(o *isle) aweigh.Instant {
	gather := time.Minute
	for _, p := range m.block.policy.Partitions {
		if bytes.Equal(p.Prefix, o.Prefix) && !p.Island {
			gather = p.Gather
		}
	}
	return o.Due.Add(10 * gather)
}
