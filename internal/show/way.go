package show

import (
	"encoding/hex"
	"fmt"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
)

type visitJSON struct {
	Prefix  string   `json:"prefix"`
	ID      string   `json:"id"`
	Mode    string   `json:"mode"`
	Anchors []string `json:"anchors"`
	Epoch   uint64   `json:"epoch"`
	Height  uint64   `json:"height"`
	Left    string   `json:"left"` // what of the key the scope leaves to be found below its prefix
}

type resolvedJSON struct {
	Key    string      `json:"key"`
	Scopes []visitJSON `json:"scopes"`
	Found  bool        `json:"found"`
	UID    string      `json:"uid,omitempty"`
	Under  string      `json:"under,omitempty"` // the key that names the object, if another does
	Number int64       `json:"version,omitempty"`
	Bytes  int         `json:"bytes"`
	Claims bool        `json:"claims"`
	Header *header     `json:"header,omitempty"`
}

// Way writes the scopes that lead to a key, the root's first, and what the key
// names; r is nil if that is nothing.
func (p Printer) Way(key []byte, way []*aweighv1.Scope, r *aweighv1.ResolveResponse) error {
	if p.Format == JSON {
		out := resolvedJSON{Key: Key(key), Found: r != nil}
		for _, x := range way {
			out.Scopes = append(out.Scopes, visitJSON{
				Prefix: string(x.Prefix), ID: hex.EncodeToString(x.Id), Mode: x.Mode, Anchors: x.Anchors, Epoch: x.Epoch, Height: x.Height,
				Left: string(key[len(x.Prefix):]),
			})
		}
		if r != nil {
			h := headerJSON(r.Header)
			out.UID, out.Number, out.Claims, out.Bytes, out.Header = r.Uid, r.Number, r.Claims, len(r.Kv.GetValue()), &h
			if string(r.Key) != string(key) {
				out.Under = Key(r.Key)
			}
		}
		return p.JSON(out)
	}
	rows := [][]string{{"SCOPE", "ID", "MODE", "ANCHORS", "EPOCH", "HEIGHT", "LEAVES"}}
	for _, x := range way {
		rows = append(rows, []string{
			ScopeName(x), short(x.Id), x.Mode, fmt.Sprint(len(x.Anchors)), fmt.Sprint(x.Epoch), fmt.Sprint(x.Height), Line(string(key[len(x.Prefix):])),
		})
	}
	if err := p.table(rows...); err != nil || r == nil {
		return err
	}
	under := ""
	if string(r.Key) != string(key) {
		under = ", as " + Key(r.Key)
	}
	_, err := fmt.Fprintf(p.Out, "\n%s names %s%s, version %d, %d bytes, as of revision %d\n", Key(key), r.Uid, under, r.Number, len(r.Kv.GetValue()), r.Header.GetRevision())
	return err
}
