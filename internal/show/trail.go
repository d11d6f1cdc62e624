package show

import (
	"fmt"
	"strings"

	"github.com/aweigh/aweigh/internal/audit"
)

// Trail writes what a verified trail shows, and which witnesses signed its checkpoint.
func (p Printer) Trail(r *audit.Report, witnesses []string) error {
	h := &r.Head.Header
	weight := uint64(0)
	for i := range r.Head.Certificate.Signatures {
		weight += r.Epoch.Roster.Weights.Of(r.Head.Certificate.Signatures[i].Anchor)
	}
	total := r.Epoch.Roster.Weights.Total()
	if p.Format == JSON {
		return p.JSON(struct {
			Network  string   `json:"network"`
			Scope    string   `json:"scope"`
			Prefix   string   `json:"prefix,omitempty"`
			First    int64    `json:"first"` // index of the first entry
			Next     int64    `json:"next"`  // index after the last entry
			Changes  int64    `json:"changes"`
			Hidden   int64    `json:"hidden"`                // entries that hashes represent, whatever their keys are
			Keys     []byte   `json:"keys_prefix,omitempty"` // of the keys of the changes, as --prefix stated it
			Bare     int64    `json:"bare_times"`            // lines whose block and time nothing proves
			Noted    bool     `json:"checkpoint"`            // it goes through the checkpoint that was named
			Signed   []string `json:"witnesses,omitempty"`   // of the checkpoint
			Height   uint64   `json:"height"`                // of the block with the head
			Block    string   `json:"block"`
			TimeNs   int64    `json:"time_ns"`
			Epoch    uint64   `json:"epoch"`
			Size     int64    `json:"size"` // of the head: entries
			Root     string   `json:"root"`
			Weight   uint64   `json:"weight"` // of the anchors that signed the block
			AllVotes uint64   `json:"total_weight"`
		}{
			r.Genesis.Network().String(), r.Genesis.Hash().String(), string(r.Genesis.Prefix()), r.First, r.Next, r.Changes, r.Hidden, r.Prefix, r.Bare, r.Noted, witnesses,
			uint64(h.Height), h.Hash().String(), int64(h.Time), uint64(h.Epoch), h.LineageSize, h.LineageRoot.String(), weight, total,
		})
	}
	of := "the root scope"
	if prefix := r.Genesis.Prefix(); len(prefix) > 0 {
		of = "scope " + Key(prefix)
	}
	shown := fmt.Sprintf("%s of %s", Count(r.Changes, "change"), of)
	if r.Next > r.First {
		shown += fmt.Sprintf(", entries %d to %d", r.First, r.Next-1)
	}
	rows := [][]string{{"trail", shown}}
	if len(r.Prefix) > 0 {
		rows = append(rows, []string{"keys", fmt.Sprintf("all begin with %s", Key(r.Prefix))})
	}
	if r.Hidden > 0 {
		rows = append(rows,
			[]string{"hidden",
				fmt.Sprintf("%s, represented by hashes; nothing proves that their keys are others",
					Count(r.Hidden, "entry"))})
	}
	if r.Bare > 0 {
		rows = append(rows, []string{"times", fmt.Sprintf("nothing proves the block and the time of %s",
			Count(r.Bare, "line"))})
	}
	if r.Noted {
		rows = append(rows, []string{"checkpoint", "a state that the trail goes through"})
	}
	if len(witnesses) > 0 {
		rows = append(rows, []string{"witnesses", Line(strings.Join(witnesses, ", "))})
	}
	rows = append(rows,
		[]string{"head", fmt.Sprintf("%s, block %d %s of epoch %d, which anchors of weight %d of %d made final",
			Count(h.LineageSize, "entry"), h.Height, h.Hash().Short(), h.Epoch, weight, total)})
	return p.table(rows...)
}
