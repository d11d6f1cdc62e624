package show

import (
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
)

// island is the JSON form of an island.
type island struct {
	ID       string     `json:"id"`
	Scope    string     `json:"scope"`
	Prefix   string     `json:"prefix"`
	Members  []string   `json:"members"`
	Weight   uint64     `json:"weight"`
	Total    uint64     `json:"total"`
	Base     uint64     `json:"base_height"`
	Here     bool       `json:"here,omitempty"` // this node's anchor is a member
	Open     bool       `json:"open,omitempty"` // it takes changes
	Height   uint64     `json:"height,omitempty"`
	Revision int64      `json:"revision,omitempty"`
	Recorded bool       `json:"recorded,omitempty"` // the scope has it on record
	DueNs    int64      `json:"due_ns,omitempty"`
	Entries  int64      `json:"entries_left,omitempty"`
	Stands   int64      `json:"stands,omitempty"`
	Aside    int64      `json:"aside,omitempty"`
	SetAside []setAside `json:"set_aside,omitempty"`
	More     bool       `json:"more,omitempty"`
	Refused  string     `json:"refused,omitempty"` // why the scope takes no more of it
	Rests    bool       `json:"rests,omitempty"`   // its outcome is final, and its replica is closed
}

type setAside struct {
	Key      string `json:"key"`
	Mutation string `json:"mutation"`
	Author   string `json:"author"`
	Reason   string `json:"reason"`
	Motion   string `json:"motion,omitempty"` // that opened about it
}

func islandJSON(i *aweighv1.Island) *island {
	if i == nil {
		return nil
	}
	out := &island{
		ID: hex.EncodeToString(i.Id), Scope: hex.EncodeToString(i.Scope), Prefix: string(i.Prefix), Members: i.Members, Weight: i.Weight, Total: i.Total, Base: i.Base,
		Here: i.Here, Open: i.Open, Height: i.Height, Revision: i.Revision, Recorded: i.Recorded, DueNs: i.DueNs, Entries: i.Entries, Stands: i.Stands, Aside: i.Aside, More: i.More, Refused: i.Refused, Rests: i.Rests,
	}
	for _, a := range i.SetAside {
		out.SetAside = append(out.SetAside, setAside{string(a.Key), hex.EncodeToString(a.Mutation), hex.EncodeToString(a.Author), a.Reason, hex.EncodeToString(a.Motion)})
	}
	return out
}

// Islands writes a list of islands.
func (p Printer) Islands(r *aweighv1.IslandsResponse) error {
	if p.Format == JSON {
		all := []*island{}
		for _, i := range r.Islands {
			all = append(all, islandJSON(i))
		}
		return p.JSON(struct {
			Header     header          `json:"header"`
			Islands    []*island       `json:"islands"`
			Partitions []partitionJSON `json:"partitions,omitempty"`
		}{headerJSON(r.Header), all, partitionsOf(r.Partitions)})
	}
	rows := [][]string{{"ISLAND", "PREFIX", "MEMBERS", "WEIGHT", "BASE", "STATE", "STANDS", "ASIDE"}}
	for _, i := range r.Islands {
		stands, aside := "-", "-"
		if i.Recorded {
			stands, aside = fmt.Sprint(i.Stands), fmt.Sprint(i.Aside)
		}
		rows = append(rows, []string{
			short(i.Id), Key(i.Prefix), strings.Join(i.Members, ","), fmt.Sprintf("%d/%d", i.Weight, i.Total), fmt.Sprintf("block %d", i.Base), islandState(i), stands, aside,
		})
	}
	if err := p.table(rows...); err != nil || len(r.Partitions) == 0 {
		return err
	}
	fmt.Fprintln(p.Out)
	for _, q := range r.Partitions {
		fmt.Fprintln(p.Out, Partition(q))
	}
	return nil
}

// partitionJSON is a partition of the policy of a scope that has no quorum.
type partitionJSON struct {
	Prefix string `json:"prefix"`
	Island string `json:"island,omitempty"` // that decides on its keys, at the node of a member
	Why    string `json:"why,omitempty"`    // none stands, or it decides nothing
}

func partitionsOf(all []*aweighv1.Partition) (out []partitionJSON) {
	for _, p := range all {
		out = append(out, partitionJSON{string(p.Prefix), hex.EncodeToString(p.Island), p.Why})
	}
	return out
}

// Partition describes which island decides on the keys of a partition, or why none does.
func Partition(p *aweighv1.Partition) string {
	if p.Why != "" {
		return fmt.Sprintf("%s: %s", Key(p.Prefix), Line(p.Why))
	}
	return fmt.Sprintf("%s: island %s decides provisionally, on requests with --provisional", Key(p.Prefix), short(p.Island))
}

// Island writes one island, with what was set aside.
func (p Printer) Island(h *aweighv1.Header, i *aweighv1.Island) error {
	if p.Format == JSON {
		return p.JSON(struct {
			Header header  `json:"header"`
			Island *island `json:"island"`
		}{headerJSON(h), islandJSON(i)})
	}
	rows := [][]string{
		{"island", hex.EncodeToString(i.Id)},
		{"prefix", Key(i.Prefix)},
		{"members", strings.Join(i.Members, ", ")},
		{"weight", fmt.Sprintf("%d of %d", i.Weight, i.Total)},
		{"base", fmt.Sprintf("block %d of the scope", i.Base)},
		{"state", islandState(i)},
	}
	if i.Here {
		rows = append(rows, []string{"here", fmt.Sprintf("block %d, revision %d", i.Height, i.Revision)})
	}
	if i.Recorded {
		rows = append(rows, []string{"stands", Count(i.Stands, "mutation")}, []string{"set aside", Count(i.Aside, "mutation")})
	}
	if i.Refused != "" {
		rows = append(rows, []string{"refused", Line(i.Refused)})
	}
	if err := p.table(rows...); err != nil {
		return err
	}
	if len(i.SetAside) == 0 {
		return nil
	}
	fmt.Fprintln(p.Out)
	aside := [][]string{{"KEY", "MUTATION", "MOTION", "WHY IT DID NOT STAND"}}
	for _, a := range i.SetAside {
		motion := "-"
		if len(a.Motion) > 0 {
			motion = short(a.Motion)
		}
		aside = append(aside, []string{Key(a.Key), short(a.Mutation), motion, Line(a.Reason)})
	}
	if err := p.table(aside...); err != nil {
		return err
	}
	if i.More {
		fmt.Fprintln(p.Out, "and others")
	}
	return nil
}

// islandState is what an island does.
func islandState(i *aweighv1.Island) string {
	switch {
	case i.Open:
		return "open"
	case i.Refused != "":
		return "refused"
	case i.Recorded && i.Entries == 0:
		return "rejoined"
	case i.Recorded && i.DueNs > time.Now().UnixNano():
		return "waits for others until " + time.Unix(0, i.DueNs).Format(time.TimeOnly)
	case i.Recorded:
		return "rejoins"
	}
	return "closed"
}
