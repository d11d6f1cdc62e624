package show

import (
	"fmt"

	"github.com/aweigh/aweigh/client"
	"github.com/aweigh/aweigh/votes"
)

type checkpointJSON struct {
	Origin   string         `json:"origin"`
	Size     int64          `json:"size"`
	Root     string         `json:"root"` // hexadecimal, where the note has base64
	Epoch    uint64         `json:"epoch"`
	Roster   string         `json:"roster"`
	Weight   uint64         `json:"weight"` // of the anchors that signed
	Total    uint64         `json:"total_weight"`
	Cosigned []cosignedJSON `json:"cosigned"`
	Note     string         `json:"note"`
}

type cosignedJSON struct {
	Anchor string `json:"anchor"`
	Name   string `json:"name"`
	Weight uint64 `json:"weight"`
	Time   int64  `json:"time"` // in seconds since 1970
	Key    string `json:"key"`  // as tools for signed notes take it
}

// Checkpoint writes a checkpoint as a signed note, or as JSON with the note in it.
func (p Printer) Checkpoint(c *client.Checkpoint) error {
	note := votes.Note(c.Text(), c.Cosigned)
	if p.Format != JSON {
		_, err := p.Out.Write(note)
		return err
	}
	out := checkpointJSON{
		Origin: c.Origin, Size: c.Head.Size, Root: c.Head.Root.String(), Epoch: uint64(c.Epoch.Number), Roster: c.Epoch.Roster.Hash().String(),
		Weight: c.Weight, Total: c.Epoch.Roster.Weights.Total(), Cosigned: []cosignedJSON{}, Note: string(note),
	}
	for i := range c.Cosigned {
		by := &c.Cosigned[i]
		id := by.Key.ID()
		x := cosignedJSON{Anchor: id.String(), Weight: c.Epoch.Roster.Weights.Of(id), Time: by.Time, Key: votes.VerifierKey(by.Key)}
		if seat, ok := c.Epoch.Roster.Seat(id); ok {
			x.Name = c.Epoch.Roster.Anchors[seat].Name
		}
		out.Cosigned = append(out.Cosigned, x)
	}
	return p.JSON(out)
}

// Tiles is what a directory of tiles holds under a checkpoint.
type Tiles struct {
	Directory  string
	Had        int64 // entries before
	Checkpoint *client.Checkpoint
	Witnesses  int      // that were asked to sign
	Signed     []string // the names of those that did
}

type tilesJSON struct {
	Directory string   `json:"directory"`
	Origin    string   `json:"origin"`
	Size      int64    `json:"size"`  // entries
	Added     int64    `json:"added"` // of them, by this run
	Root      string   `json:"root"`
	Signed    int      `json:"signed"` // anchors
	Weight    uint64   `json:"weight"` // of them
	Total     uint64   `json:"total_weight"`
	Witnesses []string `json:"witnesses,omitempty"` // that signed
}

// Tiles writes what a directory of tiles holds.
func (p Printer) Tiles(t Tiles) error {
	c := t.Checkpoint
	total := c.Epoch.Roster.Weights.Total()
	if p.Format == JSON {
		return p.JSON(tilesJSON{t.Directory, c.Origin, c.Head.Size, c.Head.Size - t.Had, c.Head.Root.String(), len(c.Cosigned), c.Weight, total, t.Signed})
	}
	witnesses := ""
	if t.Witnesses > 0 {
		witnesses = fmt.Sprintf("; %d of %s signed", len(t.Signed), Count(t.Witnesses, "witness"))
	}
	_, err := fmt.Fprintf(p.Out, "%s: %s of %s, %d new; %d of %s signed, with weight %d of %d%s\n", Text(t.Directory), Count(c.Head.Size, "entry"),
		c.Origin, c.Head.Size-t.Had, len(c.Cosigned), Count(len(c.Epoch.Roster.Anchors), "anchor"), c.Weight, total, witnesses)
	return err
}
