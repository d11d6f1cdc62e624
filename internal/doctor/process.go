package doctor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/client"
	"github.com/aweigh/aweigh/internal/home"
	"github.com/aweigh/aweigh/internal/running"
	"github.com/aweigh/aweigh/internal/show"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/store/diskstore"
)

// answerTime is how long the node's API may take to answer.
const answerTime = 5 * time.Second

// checkProcess finds the node of the directory, if it runs.
func (e *exam) checkProcess() {
	e.pid = diskstore.Holder(e.Dir.Store())
	entries, err := running.List()
	if err != nil {
		e.warn("process", err.Error(), "set XDG_RUNTIME_DIR or XDG_STATE_HOME as for the node")
	}
	var own, siblings []string
	if path, err := e.Dir.Socket(); err == nil {
		own = append(own, "unix://"+path)
	}
	if _, port, err := net.SplitHostPort(e.Settings.API); err == nil && port != "0" && e.Settings.APICA == "" {
		own = append(own, e.Settings.API)
	}
	for _, r := range entries {
		switch r.DataDir {
		case string(e.Dir):
			own = append(own, r.APIs...)
			if e.pid == 0 {
				e.pid = r.PID
			}
		case filepath.Dir(string(e.Dir)): // a devnet, whose nodes answer for themselves
			siblings = append(siblings, r.APIs...)
		}
	}
	slices.Sort(own)
	own = slices.Compact(own)
	other := e.find(own, siblings)
	switch {
	case e.runs() && e.pid != 0:
		e.ok("process", fmt.Sprintf("%d runs the node, and answers at %s%s", e.pid, e.api, e.started()))
	case e.runs():
		e.ok("process", "the node answers at "+e.api)
	case e.pid != 0:
		e.fail("process", fmt.Sprintf("%d holds the store, and does not answer at %s", e.pid, strings.Join(own, ", ")),
			fmt.Sprintf("look at its log; if it hangs or is not a node: kill %d", e.pid))
	case other != "":
		e.fail("process", "the node does not run, and another one answers at "+other, "choose another api-listen for one of them")
	default:
		e.warn("process", "the node does not run"+e.lastRan(), fmt.Sprintf("aweigh node --data-dir %s", show.Word(string(e.Dir))))
	}
}

// find looks for the node of the directory at its own addresses and those of its siblings, all at once, and names one
// of its own at which another node answers, if this one does not.
func (e *exam) find(own, siblings []string) (other string) {
	addresses := slices.Concat(own, siblings)
	answers := make([]*aweighv1.StatusResponse, len(addresses))
	var asked sync.WaitGroup
	for i, a := range addresses {
		asked.Go(func() { answers[i] = e.ask(e.ctx, a) })
	}
	asked.Wait()
	for i, status := range answers {
		switch {
		case status == nil:
		case e.isOurs(status):
			e.api, e.status = addresses[i], status
			return ""
		case i < len(own):
			other = addresses[i]
		}
	}
	return other
}

// ask asks for the status of the node at an address; nil is no answer within answerTime.
func (e *exam) ask(ctx context.Context, address string) *aweighv1.StatusResponse {
	c, err := client.Dial(address)
	if err != nil {
		return nil
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	status, err := c.Status(ctx)
	if err != nil {
		return nil
	}
	return status
}

// askScopes asks the node for the scopes that it knows.
func (e *exam) askScopes(ctx context.Context) []*aweighv1.Scope {
	c, err := client.Dial(e.api)
	if err != nil {
		return nil
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	all, err := c.Scopes(ctx)
	if err != nil {
		return nil
	}
	return all
}

// isOurs reports whether a status is of the node of this directory.
func (e *exam) isOurs(s *aweighv1.StatusResponse) bool {
	if e.identity == nil {
		return false
	}
	peer, err := machine.PeerOf(*e.identity)
	return err == nil && s.Peer == string(peer)
}

// checkTwins looks for another node of this machine and user that runs on one
// of this node's keys.
func (e *exam) checkTwins() {
	if e.identity == nil {
		e.skip("twins", "the keys cannot be read")
		return
	}
	entries, err := running.List()
	if err != nil {
		e.skip("twins", err.Error())
		return
	}
	for _, r := range entries {
		dirs, err := filepath.Glob(filepath.Join(r.DataDir, "node*"))
		if err != nil {
			dirs = nil
		}
		for _, d := range append(dirs, r.DataDir) {
			if d == string(e.Dir) {
				continue
			}
			if key := e.shared(home.Dir(d)); key != "" {
				e.fail("twins", fmt.Sprintf("process %d runs in %s on the same %s", r.PID, d, key),
					"stop one of them at once, for good: an anchor that signs in two places is a provable liar")
				return
			}
		}
	}
	e.ok("twins", "no other node of this user runs here on the same keys; other machines were not asked")
}

// shared names a key that another directory has as well.
func (e *exam) shared(d home.Dir) string {
	identity, anchor, err := d.Keys()
	if err != nil {
		return ""
	}
	id := e.identity.Public().ID()
	if other := identity.Public().ID(); bytes.Equal(other[:], id[:]) {
		return "identity.key"
	}
	if e.anchor != nil && anchor != nil && anchor.Public().ID() == e.anchor.Public().ID() {
		return "anchor.key"
	}
	return ""
}

// lastRan reports when the node last wrote, as far as its files tell.
func (e *exam) lastRan() string {
	t, err := e.newest()
	if errors.Is(err, fs.ErrPermission) {
		return "; this user may not see when it last ran"
	}
	if t.IsZero() {
		return "; it has not run here yet"
	}
	return "; it last wrote " + ago(t)
}

// newest is when a file of the store was last written.
func (e *exam) newest() (newest time.Time, err error) {
	files, err := os.ReadDir(e.Dir.Store())
	if err != nil {
		return newest, err
	}
	for _, f := range files {
		if info, err := f.Info(); err == nil && f.Name() != "LOCK" && info.ModTime().After(newest) {
			newest = info.ModTime()
		}
	}
	return newest, nil
}
