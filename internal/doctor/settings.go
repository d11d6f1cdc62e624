package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/aweigh/aweigh/internal/daemon"
	"github.com/aweigh/aweigh/internal/show"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/store/diskstore"
)

// checkSettings reports whether a node could start with its settings.
func (e *exam) checkSettings() {
	if e.Problem == nil {
		e.Problem = daemon.Check(e.Settings)
	}
	if e.Problem != nil {
		e.fail("settings", e.Problem.Error(), fmt.Sprintf("correct the flag, the variable, or %s", e.Dir.Config()))
		return
	}
	e.ok("settings", "make sense")
}

// checkKeys reads the keys.
func (e *exam) checkKeys() {
	identity, anchor, err := e.Dir.Keys()
	switch {
	case errors.Is(err, fs.ErrPermission):
		e.fail("keys", err.Error(), "run this as the user that the files belong to")
		return
	case err != nil:
		e.fail("keys", err.Error(), "bring the key files back from their backup; a new identity is a new node: \"aweigh join\"")
		return
	}
	if _, err := machine.PeerOf(identity); err != nil {
		e.fail("keys", err.Error(), "bring identity.key back from its backup")
		return
	}
	e.identity, e.anchor = &identity, anchor
	if anchor == nil {
		e.ok("keys", "identity; no anchor.key: an observer")
		return
	}
	e.ok("keys", "identity and anchor key")
}

// checkGenesis reports whether the genesis knows this node.
func (e *exam) checkGenesis() {
	g, err := e.Dir.ReadGenesis()
	if errors.Is(err, fs.ErrPermission) {
		e.fail("genesis", err.Error(), "run this as the user that the files belong to")
		return
	}
	if err != nil {
		e.fail("genesis", err.Error(), "copy genesis.cbor from another node of the network, or make a node with \"aweigh init\" or \"aweigh join\"")
		return
	}
	e.genesis = &g
	found := fmt.Sprintf("network %s %s, %s", g.Name, g.Hash().Short(), show.Count(len(g.Anchors), "anchor"))
	if e.anchor == nil || e.identity == nil {
		e.ok("genesis", found)
		return
	}
	peer, _ := machine.PeerOf(*e.identity) // checkKeys has tried
	for _, a := range g.Anchors {
		if a.Key.ID() != e.anchor.Public().ID() {
			continue
		}
		if a.Peer != string(peer) {
			e.fail("genesis", fmt.Sprintf("expects the anchor %s at peer %s, and identity.key is that of %s", a.Name, a.Peer, peer),
				"bring back the identity.key that belongs to this anchor.key")
			return
		}
		e.ok("genesis", found+", and this is "+a.Name)
		return
	}
	if e.runs() && len(e.status.GetAnchor()) > 0 {
		e.ok("genesis", found+", and this anchor was admitted since")
		return
	}
	e.warn("genesis", fmt.Sprintf("anchor.key is none of the founders of %s", found),
		"if it was admitted since, or applied, all is well (\"aweigh anchor ls\" says so); if not, check --data-dir")
}

// checkStore reports whether the store belongs to the genesis.
func (e *exam) checkStore() {
	if e.genesis == nil {
		e.skip("store", "there is no genesis to compare with")
		return
	}
	if e.runs() {
		if string(e.status.GetHeader().GetNetwork()) != string(networkOf(*e.genesis)) {
			e.fail("store", "the running node is of another network than genesis.cbor", "restart the node; check --data-dir")
			return
		}
		e.ok("store", "the running node is of the same network as genesis.cbor")
		e.inUse()
		return
	}
	if e.pid != 0 {
		e.skip("store", fmt.Sprintf("process %d uses it", e.pid))
		e.inUse()
		return
	}
	if _, err := os.Stat(e.Dir.Store()); errors.Is(err, fs.ErrNotExist) {
		e.ok("store", "not there yet: the node has not run here")
		return
	}
	s, err := diskstore.Open(e.Dir.Store(), diskstore.Options{ReadOnly: true})
	switch {
	case errors.Is(err, fs.ErrPermission):
		e.say("store", NotChecked, err.Error(), "run this as the user that the files belong to")
		return
	case errors.Is(err, diskstore.ErrFormat):
		e.fail("store", err.Error(), "run the version that wrote it")
		return
	case errors.Is(err, diskstore.ErrDamaged):
		e.fail("store", err.Error(), "see \"A damaged store\" in docs/operations.md: the node does not start on it, and nothing in it is used again")
		return
	case err != nil:
		e.fail("store", err.Error(), "see \"Backups\" in docs/operations.md: an anchor must not start from an old copy")
		return
	}
	defer s.Close()
	switch g, ok, err := machine.StoredGenesis(s); {
	case err != nil:
		e.fail("store", err.Error(), "see \"Backups\" in docs/operations.md: an anchor must not start from an old copy")
	case !ok:
		e.ok("store", "empty: the node begins at the genesis")
	case g.Hash() != e.genesis.Hash():
		e.fail("store", fmt.Sprintf("belongs to network %s, and genesis.cbor to %s", g.Hash().Short(), e.genesis.Hash().Short()),
			"genesis and store of one directory belong together: check --data-dir, and what was copied")
	default:
		e.ok("store", "belongs to the genesis")
		e.checkState(s, g)
	}
}

// networkOf is a network's identity as in the API.
func networkOf(g scope.Genesis) []byte {
	h := g.Hash()
	return h[:]
}
