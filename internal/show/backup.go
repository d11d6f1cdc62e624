package show

import (
	"fmt"
	"time"

	"github.com/aweigh/aweigh/internal/backup"
	"github.com/aweigh/aweigh/node/fsck"
)

type backupJSON struct {
	Directory string         `json:"directory"`
	Made      time.Time      `json:"made"`
	Version   string         `json:"version"` // of the program that made it
	Name      string         `json:"name"`    // of the node
	Node      string         `json:"node"`    // its peer ID
	Key       string         `json:"key"`     // its identity, which signed the manifest
	Network   string         `json:"network"`
	Height    uint64         `json:"height"` // a final block of the root scope that the store holds
	Anchor    bool           `json:"anchor"`
	Keys      bool           `json:"keys"`             // the backup holds the node's keys
	Scopes    []backup.Scope `json:"scopes,omitempty"` // that the node held; missing in old backups of nodes that ran
	Files     int            `json:"files"`
	Bytes     int64          `json:"bytes"`
}

func backupOf(dir string, m *backup.Manifest) backupJSON {
	return backupJSON{
		Directory: dir, Made: m.Made, Version: m.Version, Name: m.Name, Node: m.Node, Key: m.Key.String(), Network: m.Network, Height: m.Height,
		Anchor: m.Anchor, Keys: m.Keys, Scopes: m.Scopes, Files: len(m.Files), Bytes: m.Size(),
	}
}

// Backup writes the content of a backup in a directory.
func (p Printer) Backup(dir string, m *backup.Manifest) error {
	if p.Format == JSON {
		return p.JSON(backupOf(dir, m))
	}
	_, err := fmt.Fprintf(p.Out, "%s: %s in %s, network %.8s, height %d at least\n"+
		"signed by node %s; to make a node of it%s:\n  aweigh restore %s --from %s --data-dir NEW\n",
		Text(dir), Size(m.Size()), Count(len(m.Files), "file"), m.Network, m.Height, m.Node, keysFirst(m), Word(dir), m.Node)
	if err == nil && !m.Keys {
		_, err = fmt.Fprintf(p.Out, "or, without its keys, one that does not vote:\n  aweigh restore %s --from %s --data-dir NEW --as-observer\n", Word(dir), m.Node)
	}
	return err
}

// keysFirst is the step before a restore of a backup that holds no keys.
func keysFirst(m *backup.Manifest) string {
	switch {
	case m.Keys:
		return ""
	case m.Anchor:
		return ", put its identity.key and anchor.key into NEW first"
	}
	return ", put its identity.key into NEW first"
}

type auditedJSON struct {
	Prefix string `json:"prefix"`
	Scope  string `json:"scope"`
	Vacant bool   `json:"vacant"` // its state is not here; the node fetches it
	Height uint64 `json:"height"`
	Digest string `json:"digest,omitempty"` // of the state after the block of that height
	Epoch  uint64 `json:"epoch"`
	Roster string `json:"roster"`
}

// Restored writes the result of a restore into a directory from the backup in another one, and of its audit.
func (p Printer) Restored(dir, from string, r *backup.Restored) error {
	m := &r.Manifest
	if p.Format != JSON {
		fmt.Fprintf(p.Out, "%s: %s in %s, network %.8s, height %d, as of %s\nsigned by node %s %s\n", Text(dir), Size(m.Size()),
			Count(len(m.Files), "file"), m.Network, r.Report.Scopes[0].Head.Height, m.Made.Format(time.RFC3339), m.Node, Text(m.Name))
		p.audited(r.Report)
		if len(r.Left) > 0 {
			fmt.Fprintf(p.Out, "left out of its settings; what you want of them, add to config.yaml in %s:\n", Text(dir))
		}
		for _, x := range r.Left {
			fmt.Fprintf(p.Out, "  %s: %s\n", Line(x.Name), Line(x.Value))
		}
		_, err := fmt.Fprintf(p.Out, "start it:  aweigh node --data-dir %s\n", Word(dir))
		return err
	}
	out := struct {
		Directory string           `json:"directory"`
		Backup    backupJSON       `json:"backup"`
		Scopes    []auditedJSON    `json:"scopes"`             // as the audit found them, the root scope first
		Left      []backup.Setting `json:"left_out,omitempty"` // settings of the backup that the node does not have
	}{Directory: dir, Backup: backupOf(from, m), Left: r.Left}
	for i := range r.Report.Scopes {
		s := &r.Report.Scopes[i]
		x := auditedJSON{Prefix: s.Prefix, Scope: s.Scope.String(), Vacant: s.Vacant, Epoch: uint64(s.Epoch), Roster: s.Roster.String()}
		if !s.Vacant {
			x.Height, x.Digest = uint64(s.Head.Height), s.Head.Digest.String()
		}
		out.Scopes = append(out.Scopes, x)
	}
	return p.JSON(out)
}

// audited writes a line for each scope that an audit found to hold.
func (p Printer) audited(r *fsck.Report) {
	for i := range r.Scopes {
		s := &r.Scopes[i]
		name := "root scope"
		if s.Prefix != "" {
			name = "scope " + Text(s.Prefix)
		}
		if s.Vacant {
			fmt.Fprintf(p.Out, "%s: its state is not here; the node fetches it\n", name)
			continue
		}
		fmt.Fprintf(p.Out, "%s: state %s after block %d is final, in epoch %d (roster %d:%s)\n",
			name, s.Head.Digest.Short(), s.Head.Height, s.Epoch, s.Epoch, s.Roster)
	}
}
