package show

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"github.com/aweigh/aweigh"
	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/scope"
)

// Way is the scopes that lead to a key, and the key's object.
type Way struct {
	Key    []byte
	Scopes []*aweighv1.Scope         // the root's first
	Answer *aweighv1.ResolveResponse // nil if the key names nothing
	Verb   string
	Said   []*aweighv1.Said // by scope, to Verb

	// If it was proven:
	Visits  []scope.Visit
	Network aweigh.NetworkID
	Pinned  bool // Network is known from elsewhere
	Traced  bool // and shall be shown
}

type visitJSON struct {
	Prefix  string     `json:"prefix"`
	ID      string     `json:"id"`
	Mode    string     `json:"mode"`
	Anchors []string   `json:"anchors"`
	Epoch   uint64     `json:"epoch"`
	Height  uint64     `json:"height"`
	Left    string     `json:"left"` // what of the key the scope leaves to be found below its prefix
	Says    *saidJSON  `json:"says,omitempty"`
	Proven  *traceJSON `json:"proven,omitempty"`
}

// traceJSON is the verified signers of a scope.
type traceJSON struct {
	Roster    string          `json:"roster"`    // its hash
	Handovers int             `json:"handovers"` // epochs that lead to it, each proven by the one before
	Head      attestationJSON `json:"head"`
}

type resolvedJSON struct {
	Key     string      `json:"key"`
	Scopes  []visitJSON `json:"scopes"`
	Found   bool        `json:"found"`
	UID     string      `json:"uid,omitempty"`
	Under   string      `json:"under,omitempty"` // the key that names the object, if another does
	Number  int64       `json:"version,omitempty"`
	Bytes   int         `json:"bytes"`
	Claims  bool        `json:"claims"`
	AgeNs   *int64      `json:"age_ns,omitempty"` // of the scope's last block that the node had, if it answered alone
	Asked   []tripJSON  `json:"asked,omitempty"`  // of scopes that the node does not hold
	Network string      `json:"network,omitempty"`
	Pinned  bool        `json:"pinned,omitempty"` // Network is known from elsewhere than the proof
	Header  *header     `json:"header,omitempty"`
}

// Way writes it.
func (p Printer) Way(w Way) error {
	if p.Format == JSON {
		return p.JSON(w.json())
	}
	rows := [][]string{{"SCOPE", "ID", "MODE", "ANCHORS", "EPOCH", "HEIGHT", "LEAVES"}}
	if w.Verb != "" {
		rows[0] = append(rows[0], "SAYS TO "+w.Verb)
	}
	for _, x := range w.Scopes {
		row := []string{
			ScopeName(x), short(x.Id), x.Mode, fmt.Sprint(len(x.Anchors)), fmt.Sprint(x.Epoch), fmt.Sprint(x.Height), Line(string(w.Key[len(x.Prefix):])),
		}
		if said := w.said(x); said != nil {
			says, _, because := verdict(said)
			row = append(row, says+": "+because)
		}
		rows = append(rows, row)
	}
	if err := p.table(rows...); err != nil || w.Answer == nil {
		return err
	}
	r := w.Answer
	under := ""
	if string(r.Key) != string(w.Key) {
		under = ", as " + Key(r.Key)
	}
	fmt.Fprintf(p.Out, "\n%s names %s%s, version %d, %s, as of revision %d", Key(w.Key), r.Uid, under, r.Number, Count(len(r.Kv.GetValue()), "byte"), r.Header.GetRevision())
	if age, alone := w.age(); alone && w.Scopes[len(w.Scopes)-1].Held {
		fmt.Fprintf(p.Out, "; the node answered alone, and the scope's last block that it has is %s old", age.Round(time.Millisecond))
	} else if alone {
		fmt.Fprintf(p.Out, "; the node does not hold the scope: its anchors reported it, as of a block that is %s old", age.Round(time.Millisecond))
	}
	if _, err := fmt.Fprintln(p.Out); err != nil || len(w.Visits) == 0 {
		return err
	}
	if w.Traced {
		fmt.Fprintln(p.Out)
		if err := p.trips(r.Trips); err != nil {
			return err
		}
		rows = [][]string{{"PROVEN", "ROSTER", "HANDOVERS", "EPOCH", "BLOCK", "WEIGHT", "SIGNED BY"}}
		for i := range w.Visits {
			v := &w.Visits[i]
			name := "/"
			if len(v.Prefix) > 0 {
				name = Key(v.Prefix)
			}
			var signers []string
			for _, s := range v.Head.Signers {
				signers = append(signers, s.Name)
			}
			rows = append(rows, []string{
				name, v.Roster.Short(), fmt.Sprint(v.Handovers), fmt.Sprint(v.Head.Epoch), fmt.Sprint(v.Head.Height),
				fmt.Sprintf("%d of %d", v.Head.Weight, v.Head.Total), strings.Join(signers, " "),
			})
		}
		if err := p.table(rows...); err != nil {
			return err
		}
	}
	word := "the scopes, and the change that made it so, are verified here for network %s\n"
	if !w.Pinned {
		word = "the scopes, and the change that made it so, are consistent with each other, for network %s; give --network to compare\n"
	}
	_, err := fmt.Fprintf(p.Out, word, w.Network)
	return err
}

// said is a scope's verdict on the verb, nil if it was not asked.
func (w *Way) said(x *aweighv1.Scope) *aweighv1.Said {
	for _, s := range w.Said {
		if bytes.Equal(s.Scope, x.Id) {
			return s
		}
	}
	return nil
}

// age is that of the last block of the deciding scope that the node had; alone says that
// it answered from there.
func (w *Way) age() (age time.Duration, alone bool) {
	if w.Answer == nil || w.Answer.Header.GetLinearizable() || len(w.Scopes) == 0 {
		return 0, false
	}
	return max(time.Since(time.Unix(0, w.Scopes[len(w.Scopes)-1].BlockTimeNs)), 0), true
}

func (w *Way) json() resolvedJSON {
	out := resolvedJSON{Key: Key(w.Key), Found: w.Answer != nil}
	for _, x := range w.Scopes {
		v := visitJSON{
			Prefix: string(x.Prefix), ID: hex.EncodeToString(x.Id), Mode: x.Mode, Anchors: x.Anchors, Epoch: x.Epoch, Height: x.Height,
			Left: string(w.Key[len(x.Prefix):]),
		}
		if said := w.said(x); said != nil {
			says := saidOf(said)
			v.Says = &says
		}
		for i := range w.Visits {
			if t := &w.Visits[i]; bytes.Equal(t.Scope[:], x.Id) { // the node may tell of others than it proves
				v.Proven = &traceJSON{Roster: t.Roster.String(), Handovers: t.Handovers, Head: attestation(t.Head)}
			}
		}
		out.Scopes = append(out.Scopes, v)
	}
	r := w.Answer
	if r == nil {
		return out
	}
	h := headerJSON(r.Header)
	out.UID, out.Number, out.Claims, out.Bytes, out.Header = r.Uid, r.Number, r.Claims, len(r.Kv.GetValue()), &h
	if string(r.Key) != string(w.Key) {
		out.Under = Key(r.Key)
	}
	if age, alone := w.age(); alone {
		ns := age.Nanoseconds()
		out.AgeNs = &ns
	}
	if w.Traced {
		out.Asked = tripsJSON(r.Trips)
	}
	if len(w.Visits) > 0 {
		out.Network, out.Pinned = w.Network.String(), w.Pinned
	}
	return out
}
