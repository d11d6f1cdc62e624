package show

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/scope"
)

type scopeJSON struct {
	Prefix       string   `json:"prefix"` // "" is the root scope's
	PrefixHex    string   `json:"prefix_hex,omitempty"`
	ID           string   `json:"id"`
	Parent       string   `json:"parent,omitempty"`
	Depth        uint32   `json:"depth"`
	Name         string   `json:"name,omitempty"`
	Mode         string   `json:"mode"`
	Epoch        uint64   `json:"epoch"`
	Height       uint64   `json:"height"`
	Revision     int64    `json:"revision"`
	BlockTimeNs  int64    `json:"block_time_ns"`
	Delegated    uint64   `json:"delegated"`
	Anchors      []string `json:"anchors"`
	Anchor       bool     `json:"anchor"`
	FailuresLeft int64    `json:"failures_left"`
	CatchingUp   bool     `json:"catching_up"`
	LostState    bool     `json:"lost_state"`
	KeysHanded   int64    `json:"keys_handed"`
	Held         bool     `json:"held"`
	Bytes        int64    `json:"bytes"`
	BytesAllowed int64    `json:"bytes_allowed"` // 0: any number
	Rate         float64  `json:"rate"`          // changes a second, over the last seconds
	RateAllowed  int64    `json:"rate_allowed"`  // of one node's clients; 0: any number
	State        string   `json:"state"`
	NoticeNs     int64    `json:"notice_ns"` // 0: it was founded for good
	YieldsNs     int64    `json:"yields_ns,omitempty"`
	Successors   []string `json:"successors,omitempty"`
	Folds        bool     `json:"folds,omitempty"`
	Closed       bool     `json:"closed,omitempty"`
}

// ScopeName is what people call a scope: its prefix, or / for the root scope.
func ScopeName(x *aweighv1.Scope) string {
	if len(x.Prefix) == 0 {
		return "/"
	}
	return Key(x.Prefix)
}

// health describes in a word or two whether a scope can decide.
func health(x *aweighv1.Scope) string {
	switch {
	case !x.Held:
		return "not held here"
	case x.CatchingUp:
		return "catching up"
	case x.LostState:
		return "LOST STATE here"
	case x.FailuresLeft < 0:
		return "no quorum"
	case scope.FullAt(x.Bytes, x.BytesAllowed):
		return "full"
	case x.FailuresLeft == 0: // as there are so few, or as one is away
		return "ok, none may fail"
	}
	return fmt.Sprintf("ok, %d may fail", x.FailuresLeft)
}

// Scopes writes the scopes of a namespace, as a list or as a tree.
func (p Printer) Scopes(r *aweighv1.ScopesResponse, tree bool) error {
	if p.Format == JSON {
		out := []scopeJSON{}
		for _, x := range r.Scopes {
			j := scopeJSON{
				Prefix: string(x.Prefix), ID: hex.EncodeToString(x.Id), Parent: hex.EncodeToString(x.Parent), Depth: x.Depth, Name: x.Name,
				Mode: x.Mode, Epoch: x.Epoch, Height: x.Height, Revision: x.Revision, BlockTimeNs: x.BlockTimeNs, Delegated: x.Delegated,
				Anchors: x.Anchors, Anchor: x.Anchor, FailuresLeft: x.FailuresLeft, CatchingUp: x.CatchingUp, LostState: x.LostState, KeysHanded: x.KeysHanded, Held: x.Held,
				Bytes: x.Bytes, BytesAllowed: x.BytesAllowed, Rate: x.Rate, RateAllowed: x.RateAllowed, State: health(x), NoticeNs: x.NoticeNs, YieldsNs: x.YieldsNs, Successors: x.Successors, Folds: x.Folds, Closed: x.Closed,
			}
			if Key(x.Prefix) != string(x.Prefix) {
				j.PrefixHex = hex.EncodeToString(x.Prefix)
			}
			out = append(out, j)
		}
		var h *header // missing where the answer is about one scope
		if r.Header != nil {
			said := headerJSON(r.Header)
			h = &said
		}
		return p.JSON(struct {
			Header *header     `json:"header,omitempty"` // of the root scope
			Scopes []scopeJSON `json:"scopes"`
		}{h, out})
	}
	rows := [][]string{{"SCOPE", "ID", "MODE", "ANCHORS", "EPOCH", "HEIGHT", "RATE", "SIZE", "LAST", "STATE"}}
	for _, x := range r.Scopes {
		name := ScopeName(x)
		if tree {
			name = strings.Repeat("  ", int(x.Depth)) + name
		}
		last := "-"
		if x.Height > 0 {
			last = ago(time.Since(time.Unix(0, x.BlockTimeNs)))
		}
		rows = append(rows, []string{name, short(x.Id), x.Mode, fmt.Sprint(len(x.Anchors)), known(x, x.Epoch), known(x, x.Height), scopeRate(x), scopeSize(x), last, health(x) + handing(x)})
	}
	if err := p.table(rows...); err != nil {
		return err
	}
	return p.toldAlone(r.Header)
}

// known is a number of a scope's, if the node knows it.
func known(x *aweighv1.Scope, n uint64) string {
	if !x.Held && n == 0 {
		return "-"
	}
	return fmt.Sprint(n)
}

// scopeSize is how much a scope holds, and may.
func scopeSize(x *aweighv1.Scope) string {
	switch {
	case !x.Held:
		return "-"
	case x.BytesAllowed > 0:
		return fmt.Sprintf("%s of %s", Size(x.Bytes), Size(x.BytesAllowed))
	}
	return Size(x.Bytes)
}

// scopeRate is how many changes a scope takes a second, and may of each node's clients.
func scopeRate(x *aweighv1.Scope) string {
	if !x.Held {
		return "-"
	}
	digits := 0
	if x.Rate >= 0.05 && x.Rate < 10 {
		digits = 1
	}
	s := strconv.FormatFloat(x.Rate, 'f', digits, 64) + "/s"
	if x.RateAllowed > 0 {
		s += fmt.Sprintf(" of %d", x.RateAllowed)
	}
	return s
}

// Size is a number of bytes for people.
func Size(n int64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
}

// ago is a time that passed, for people.
func ago(d time.Duration) string {
	switch {
	case d < time.Second:
		return "now"
	case d < time.Minute:
		return d.Truncate(time.Second).String() + " ago"
	}
	return strings.TrimSuffix(d.Truncate(time.Minute).String(), "0s") + " ago"
}

// handing reports that others are to govern a scope.
func handing(x *aweighv1.Scope) string {
	switch {
	case x.Closed:
		return ", closed"
	case x.YieldsNs == 0:
		return ""
	case x.Folds:
		return ", goes home"
	}
	return ", revoked"
}

// revocable describes whether the scope above can change a scope's government, and
// its order.
func revocable(x *aweighv1.Scope) string {
	if x.NoticeNs == 0 {
		return "no, it was founded for good"
	}
	s := fmt.Sprintf("by the scope above, %v after it says so", time.Duration(x.NoticeNs))
	switch due := time.Unix(0, x.YieldsNs); {
	case x.Closed:
		s += "; it has closed, and its keys are on their way to the scope above"
	case x.YieldsNs == 0:
	case x.Folds && time.Now().After(due.Add(5*time.Second)):
		s += fmt.Sprintf("; due since %s: once a quorum of its anchors is there, it goes back to the scope above", instant(x.YieldsNs))
	case x.Folds:
		s += fmt.Sprintf("; from %s on it goes back to the scope above", instant(x.YieldsNs))
	case time.Now().After(due.Add(5 * time.Second)):
		s += fmt.Sprintf("; due since %s: once a quorum of its anchors is there, it is handed over to %s", instant(x.YieldsNs), strings.Join(x.Successors, ", "))
	default:
		s += fmt.Sprintf("; from %s on %s govern it", instant(x.YieldsNs), strings.Join(x.Successors, ", "))
	}
	return s
}

// Scope writes a node's whole answer about one scope.
func (p Printer) Scope(x, parent *aweighv1.Scope) error {
	if p.Format == JSON {
		return p.Scopes(&aweighv1.ScopesResponse{Scopes: []*aweighv1.Scope{x}}, false)
	}
	from := "the root scope"
	if parent != nil {
		from = fmt.Sprintf("delegated by %s, with %s", ScopeName(parent), Count(x.KeysHanded, "key"))
	}
	part := "this node follows"
	switch {
	case !x.Held:
		part = "this node does not hold it, and asks its anchors"
	case x.Anchor:
		part = "this node is an anchor"
	}
	rows := [][]string{
		{"scope", ScopeName(x)}, {"id", hex.EncodeToString(x.Id)}, {"origin", from}, {"mode", x.Mode},
		{"anchors", strings.Join(x.Anchors, ", ")}, {"here", part}, {"state", health(x)},
		{"rate", scopeRate(x)}, {"size", scopeSize(x)}, {"epoch", known(x, x.Epoch)}, {"height", known(x, x.Height)}, {"revision", known(x, uint64(x.Revision))},
		{"delegated", known(x, x.Delegated)},
	}
	if parent != nil {
		rows = append(rows, []string{"revocable", revocable(x)})
	}
	if x.Name != "" {
		rows = append(rows[:1], append([][]string{{"name", x.Name}}, rows[1:]...)...)
	}
	return p.table(rows...)
}
