package node

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/quorum"
)

// silences holds the scopes in which this node's anchor received ballots of its own that are not on its record (P9). A
// loss is logged once for each scope, in whatever epochs it is found; scopes that are found together share a line.
type silences struct {
	mu    sync.Mutex
	since time.Time                 // when the last of the scopes was found
	until map[*Replica]aweigh.Epoch // the epoch with which it signs again, as logged; 0: not logged
}

// met notes that the anchor received such a ballot in a scope.
func (s *silences) met(p *Replica) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.until == nil {
		s.until = make(map[*Replica]aweigh.Epoch)
	}
	if _, met := s.until[p]; !met {
		s.until[p] = 0
		s.since = time.Now()
	}
}

// parts returns the replicas in the scopes, and how long ago the last of them was found.
func (s *silences) parts() (all []*Replica, since time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for p := range s.until { // order-free: sorted below
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b *Replica) int { return strings.Compare(string(a.prefix), string(b.prefix)) })
	return all, time.Since(s.since)
}

// isNew reports whether nothing was logged of a scope yet.
func (s *silences) isNew(p *Replica) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.until[p] == 0
}

// tell notes until when the anchor is silent in scopes. It reports whether that is news, and whether one of the scopes
// was not logged before.
func (s *silences) tell(until map[*Replica]aweigh.Epoch) (news, first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for p, was := range s.until { // order-free
		if now, silent := until[p]; silent {
			news, first = news || was != now, first || was == 0
			s.until[p] = now
		}
	}
	return news, first
}

// end forgets a scope in which the anchor may sign.
func (s *silences) end(p *Replica) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.until, p)
}

// LostBelow returns the prefixes of the scopes below this one in which the node's anchor lost its record of ballots
// and signs nothing in their epochs (P9). The node learns of a loss when it receives a ballot of its own.
func (n *Replica) LostBelow() (prefixes [][]byte) {
	parts, _ := n.of.silences.parts()
	for _, p := range parts {
		if p != n && bytes.HasPrefix(p.prefix, n.prefix) && p.Status().Lost {
			prefixes = append(prefixes, p.prefix)
		}
	}
	return prefixes
}

// maxSilences bounds the scopes that one line names.
const maxSilences = 20

// silent logs in which scopes the anchor signs nothing, once that lasts: while the node catches up, it receives
// ballots of epochs that are over, which no longer matter. It reports whether to look again soon.
func (n *Node) silent(ctx context.Context) (soon bool) {
	parts, since := n.silences.parts()
	if len(parts) > 0 && since < noticeSoon {
		return true
	}
	do := "Leave it running: it signs again by itself when the epoch ends, for which the others must be a quorum"
	until, words := make(map[*Replica]aweigh.Epoch), []string(nil)
	for _, p := range parts {
		s, err := p.look(ctx)
		switch {
		case err == nil && s.Behind:
			soon = true
			continue
		case err != nil || !s.Lost:
			n.silences.end(p)
			continue
		case s.Rules.Mode == quorum.Crash && n.silences.isNew(p): // no anchor may lie there, not even by accident
			do = "Run it as an observer, without anchor.key, until then"
		}
		until[p] = s.Epoch + 1
		words = append(words, fmt.Sprintf("epoch %d of %s", until[p], scopeName(p.prefix)))
	}
	news, first := n.silences.tell(until)
	if len(words) > maxSilences {
		words = append(words[:maxSilences], fmt.Sprintf("%d more", len(words)-maxSilences))
	}
	all := strings.Join(words, ", ")
	switch {
	case !news:
	case first:
		n.root.log.Error("this anchor's record is older than ballots that it signed: it signs nothing more in this epoch. "+
			do+". If its store was neither lost nor restored, a second process has its key: stop that one", "until", all)
	default:
		n.root.log.Debug("this anchor signs nothing still", "until", all)
	}
	return soon
}

// scopeName returns a scope's name for people.
func scopeName(prefix []byte) string {
	if len(prefix) == 0 {
		return "/"
	}
	return string(prefix)
}
