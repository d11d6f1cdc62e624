package show

import (
	"encoding/hex"
	"fmt"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/token"
	"github.com/aweigh/aweigh/scope"
)

type grantJSON struct {
	authorJSON
	By           string  `json:"by"` // the key that signed it
	NotAfterNs   int64   `json:"not_after_ns"`
	Record       *string `json:"record,omitempty"` // the key that must name the object
	RecordBase64 []byte  `json:"record_base64,omitempty"`
	Object       string  `json:"object,omitempty"`
}

type tokenJSON struct {
	Token      string      `json:"token,omitempty"` // where it was made
	File       string      `json:"file,omitempty"`
	Scope      string      `json:"scope"`
	Bearer     bool        `json:"bearer"` // it holds the key that signs
	NotAfterNs int64       `json:"not_after_ns"`
	Expired    bool        `json:"expired"`            // by the clock of this machine
	Grants     []grantJSON `json:"grants"`             // the first is of an author that the policy permits
	Warnings   []string    `json:"warnings,omitempty"` // where it was made: what of it permits nothing
}

// Token writes what a token permits, and never its key. made is its text, where it was made and goes to no file; file
// is where it was written. With JSON it has the warnings.
func (p Printer) Token(t *token.Token, made, file string, now aweigh.Instant, warnings ...string) error {
	scopeID := t.Last().Scope
	if p.Format == JSON {
		out := tokenJSON{
			Token: made, File: file, Scope: hex.EncodeToString(scopeID[:]), Bearer: !t.Key.IsZero(),
			NotAfterNs: int64(t.NotAfter()), Expired: t.NotAfter() < now, Warnings: warnings,
		}
		for i := range t.Grants {
			g := &t.Grants[i]
			x := grantJSON{authorJSON: entryOf(entryOfGrant(g)), By: g.By.String(), NotAfterNs: int64(g.NotAfter)}
			if len(g.Record) > 0 {
				x.Record, x.RecordBase64 = bytesField(g.Record)
				x.Object = g.Object.String()
			}
			out.Grants = append(out.Grants, x)
		}
		return p.JSON(out)
	}
	rows := [][]string{{"GRANT", "TO", "KEYS", "MAY", "UNTIL", "RECORD"}}
	for i := range t.Grants {
		g := &t.Grants[i]
		until, record := instant(int64(g.NotAfter)), "-"
		if g.NotAfter < now {
			until += " (over)"
		}
		if len(g.Record) > 0 {
			record = Key(g.Record)
		}
		rows = append(rows, append(authorRow(entryOfGrant(g)), until, record))
	}
	if err := p.table(rows...); err != nil {
		return err
	}
	holder := "every program that reads the token can use it"
	if t.Key.IsZero() {
		holder = "only the key of the last grant can use it"
	}
	if len(t.Grants) > 1 {
		holder = "each grant narrows the one before; " + holder
	}
	_, err := fmt.Fprintf(p.Out, "\nsigned by %s; for scope %s; %s\n", t.Grants[0].By, hex.EncodeToString(scopeID[:4]),
		holder)
	return err
}

// entryOfGrant is an entry that permits what a grant does.
func entryOfGrant(g *scope.Grant) *scope.Author {
	return &scope.Author{Name: g.Name, Who: scope.OneKey, Key: g.To, Prefixes: g.Prefixes, Verbs: g.Verbs}
}
