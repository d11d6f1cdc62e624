package doctor

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"time"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/internal/show"
	"github.com/aweigh/aweigh/quorum"
)

// moveTime is how long writes that wait may leave the height where it is.
const moveTime = 5 * time.Second

// checkHealth asks the running node how it is.
func (e *exam) checkHealth() {
	if !e.runs() {
		e.skip("quorum", "the node does not run")
		return
	}
	s := e.status
	if s.Version == e.Version {
		e.ok("version", s.Version)
	} else {
		e.warn("version", fmt.Sprintf("the node runs %s, and this program is %s", s.Version, e.Version), "restart the node to run the installed program")
	}
	e.checkStanding()
	var missing []string
	for _, a := range s.Anchors {
		if !a.Reachable && a.Weight > 0 {
			missing = append(missing, fmt.Sprintf("%s (%s)", a.Name, show.AnchorState(a)))
		}
	}
	switch found := show.Quorum(s); {
	case s.FailuresLeft < 0:
		do := "see to " + strings.Join(missing, ", ")
		for _, p := range s.Partitions {
			do += "; " + show.Partition(p)
		}
		e.fail("quorum", found, do)
	case len(missing) > 0:
		e.warn("quorum", found, "see to "+strings.Join(missing, ", "))
	default:
		e.ok("quorum", found)
	}
	if len(s.Peers) == 0 && (len(s.Anchors) > 1 || len(s.Anchor) == 0) {
		e.fail("peers", "the node has no connection", "check that bootstrap names running nodes, and that the firewall lets it out")
	} else {
		e.ok("peers", "connected with "+nodes(len(s.Peers)))
	}
	e.checkHeight()
}

// checkStanding reports whether the anchor may still sign.
func (e *exam) checkStanding() {
	s := e.status
	backups := "see \"Backups\" in docs/operations.md"
	for _, f := range s.Faulty {
		if len(s.Anchor) > 0 && bytes.Equal(f, s.Anchor) {
			e.fail("standing", "this anchor is proven to have signed two conflicting ballots", "find the second process or the old copy on its key; "+backups)
			return
		}
	}
	switch {
	case s.LostState:
		do := regain(s.Mode == quorum.Crash.String(), s.FailuresLeft < 0, fmt.Sprintf("epoch %d", s.Header.GetEpoch()+1))
		e.fail("standing", fmt.Sprintf("this anchor's record is older than ballots that it signed: it signs nothing more in epoch %d", s.Header.GetEpoch()),
			do+"; "+backups)
	case len(s.LostScopes) > 0:
		crash, stuck := e.lostBelow()
		e.fail("standing", fmt.Sprintf("this anchor lost its record of ballots in %s, and signs nothing there in this epoch",
			show.Count(len(s.LostScopes), "scope")),
			fmt.Sprintf("%s; \"aweigh status --scope %s\" prints the epoch, and \"aweigh scope ls\" lists all; %s",
				regain(crash, stuck, "the next epoch there"), show.Word(show.Key(s.LostScopes[0])), backups))
	case len(s.Anchor) == 0:
		e.ok("standing", "an observer: it signs no ballots")
	case len(s.Faulty) > 0:
		e.warn("standing", fmt.Sprintf("proven at fault: %s", show.Count(len(s.Faulty), "other anchor")), "\"aweigh status\" names them; ask their operators")
	case show.ClockOff(s) != "":
		e.fail("standing", "the clock of this anchor's node is "+show.ClockOff(s)+": it counts as away", syncClock)
	case s.Listening:
		e.warn("standing", "this anchor signs nothing until it has answers of a quorum", "see \"quorum\" and \"peers\"")
	default:
		e.ok("standing", "this anchor signs")
	}
}

// regain is what to do with an anchor that lost its record, until the next epoch: crash is whether that is in mode
// crash, and stuck whether the other anchors are no quorum, which the end of an epoch takes.
func regain(crash, stuck bool, next string) string {
	const noEnd = "epochs end by blocks, and the others are no quorum without this anchor: "
	switch {
	case crash && stuck: // no anchor may lie in mode crash, not even by accident
		return "stop it, and move anchor.key out of its directory; " + noEnd + "put the key into the newest directory of the " +
			"node and start it there, or bring other anchors back, and put the key back when " + next + " has begun"
	case crash:
		return "stop it, move anchor.key out of its directory, and start it as an observer; put the key back when " + next + " has begun"
	case stuck:
		return noEnd + "start the node from its newest directory if there is one, or bring other anchors back"
	}
	return "let it run: it follows and serves, and signs again with " + next + "; find out how it lost its record"
}

// lostBelow reports whether a scope in which the anchor lost its record is of mode crash, and whether the other anchors
// are no quorum in one.
func (e *exam) lostBelow() (crash, stuck bool) {
	for _, s := range e.scopes(e.ctx) {
		if s.LostState {
			crash, stuck = crash || s.Mode == quorum.Crash.String(), stuck || s.FailuresLeft < 0
		}
	}
	return crash, stuck
}

// checkHeight reports whether blocks become final when there is something to write.
func (e *exam) checkHeight() {
	ctx, cancel := context.WithTimeout(e.ctx, moveTime)
	defer cancel()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	first := e.status
	for now := first; ; {
		height := now.GetHeader().GetHeight()
		switch {
		case height > first.GetHeader().GetHeight():
			e.ok("height", fmt.Sprintf("%d, and moves", height))
			return
		case now.CatchingUp:
		case now.Waiting == 0:
			e.ok("height", fmt.Sprintf("%d, idle since %s", height, ago(time.Unix(0, now.BlockTimeNs))))
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			e.fail("height", fmt.Sprintf("%d, and does not move in %s, although %s", height, moveTime, still(now)),
				"see the other findings; the log with --log-level debug shows every view")
			return
		}
		if again := e.ask(ctx, e.api); again != nil {
			now = again
		}
	}
}

// still is what should make the height of a node grow.
func still(s *aweighv1.StatusResponse) string {
	if s.Waiting == 0 {
		return "others are ahead"
	}
	if s.Waiting == 1 {
		return "1 write waits"
	}
	return fmt.Sprintf("%d writes wait", s.Waiting)
}
