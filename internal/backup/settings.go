package backup

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/aweigh/aweigh/internal/config"
	"github.com/aweigh/aweigh/internal/home"
	"github.com/aweigh/aweigh/scope"
)

// Setting is one of a backup that a restored node does not have.
type Setting struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// harmless are the settings that a backup of an unknown node brings. All others may open a port for clients, weaken how
// a port finds its callers, or name a file to read or write; so may any that this version does not know.
var harmless = []string{
	"name", "listen", "announce", "bootstrap", "relays", "follow", "trusted", "prune", "first-come", "conns-per-ip", "watch-memory",
	"answer-memory", "copy-memory", "auto-compaction-mode", "auto-compaction-retention", "log-level", "log-format",
}

// settle changes the settings that a backup brought, before the directory is a node, and returns those that it left
// out. It does nothing to settings of the node that was backed up, for that node.
func (k Restorer) settle(genesis string) (left []Setting, err error) {
	if !k.Observer && k.Signer != Anyone {
		return nil, nil
	}
	all, err := config.ReadFile(k.To.Config())
	if err != nil {
		return nil, fmt.Errorf("%w: its settings: %w", ErrBroken, err)
	}
	for _, name := range slices.Sorted(maps.Keys(all.Raw())) {
		bad := k.Signer == Anyone && !slices.Contains(harmless, name)
		if bad || k.Observer && (name == "audit-file" || name == "audit-level") { // one file is not written by two nodes
			value := all.String(name)
			if list := all.Strings(name); len(list) > 0 {
				value = strings.Join(list, ",")
			}
			left = append(left, Setting{name, value})
			all.Delete(name)
		}
	}
	s := home.SettingsOf(all)
	if k.Observer {
		raw, err := os.ReadFile(genesis)
		if err != nil {
			return nil, fmt.Errorf("backup: %w", err)
		}
		g, err := scope.DecodeGenesis(raw)
		if err != nil {
			return nil, err
		}
		beside(&s, g)
	}
	return left, k.To.SaveSettings(s)
}
