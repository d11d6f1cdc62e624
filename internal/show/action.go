package show

import (
	"encoding/hex"
	"fmt"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
)

// Acted writes what came of a verb that writes, claims or signals. One that reads is for
// Resolved.
func (p Printer) Acted(verb string, key []byte, r *aweighv1.ActResponse) error {
	switch p.Format {
	case JSON:
		out := struct {
			Header    header  `json:"header"`
			Verb      string  `json:"verb"`
			Class     string  `json:"class"`
			Key       *string `json:"key,omitempty"`
			KeyBase64 []byte  `json:"key_base64,omitempty"`
			UID       string  `json:"uid,omitempty"`      // of what was written
			Watchers  *uint64 `json:"watchers,omitempty"` // at this node, of a signal
			Repeated  bool    `json:"repeated,omitempty"` // answered from the record
		}{Header: headerJSON(r.Header), Verb: verb, Class: r.Class, UID: r.Uid, Repeated: r.Repeated}
		out.Key, out.KeyBase64 = bytesField(key)
		if r.Class == "signal" {
			out.Watchers = &r.Watchers
		}
		return p.JSON(out)
	case Value, Raw:
		return nil
	}
	var err error
	switch {
	case r.Repeated:
		return p.done(r.Header)
	case r.Class == "signal":
		_, err = fmt.Fprintf(p.Out, "OK  %s %s: given to %s at this node, and sent on to the other nodes of the scope\n", verb, Key(key), Count(r.Watchers, "watch"))
	case r.Class == "claim":
		_, err = fmt.Fprintf(p.Out, "OK  %s %s: claimed, final in block %d\n", verb, Key(key), r.Header.GetHeight())
	default:
		_, err = fmt.Fprintf(p.Out, "OK  %s %s: revision %d, final in block %d\n", verb, Key(key), r.Header.GetRevision(), r.Header.GetHeight())
	}
	return err
}

type saidJSON struct {
	Scope   string `json:"scope"`
	Prefix  string `json:"prefix"`
	Decides bool   `json:"decides"`
	Allowed bool   `json:"allowed"`
	Class   string `json:"class,omitempty"`
	Rule    string `json:"rule,omitempty"`
	Why     string `json:"why,omitempty"`
	Detail  string `json:"detail,omitempty"`
}

func saidOf(x *aweighv1.Said) saidJSON {
	return saidJSON{hex.EncodeToString(x.Scope), string(x.Prefix), x.Decides, x.Allowed, x.Class, x.Rule, x.Why, x.Detail}
}

// verdict is a scope's verdict, in words.
func verdict(x *aweighv1.Said) (says, class, because string) {
	says, because = "allowed", x.Rule
	switch {
	case !x.Allowed:
		says, because = "denied", x.Why
	case because == "" && x.Decides:
		because = "every scope knows it"
	case because == "":
		because = "no rule about it, and a scope below decides"
	}
	if x.Detail != "" {
		because += " (" + x.Detail + ")"
	}
	if class = x.Class; class == "" {
		class = "-"
	}
	return says, class, because
}

// Judged writes the scopes' verdicts on a verb. tried reports that the last rule is not in
// force.
func (p Printer) Judged(verb string, key []byte, r *aweighv1.JudgeResponse, tried bool) error {
	allowed := true
	for _, x := range r.Said {
		allowed = allowed && x.Allowed
	}
	if p.Format == JSON {
		out := struct {
			Verb      string     `json:"verb"`
			Key       *string    `json:"key,omitempty"`
			KeyBase64 []byte     `json:"key_base64,omitempty"`
			Caller    string     `json:"caller"`
			Allowed   bool       `json:"allowed"`
			Tried     bool       `json:"tried,omitempty"` // the last rule was given, and is not in force
			Scopes    []saidJSON `json:"scopes"`          // broadest first
		}{Verb: verb, Caller: hex.EncodeToString(r.Caller), Allowed: allowed, Tried: tried}
		out.Key, out.KeyBase64 = bytesField(key)
		for _, x := range r.Said {
			out.Scopes = append(out.Scopes, saidOf(x))
		}
		return p.JSON(out)
	}
	rows := [][]string{{"SCOPE", "SAYS", "CLASS", "BECAUSE"}}
	for _, x := range r.Said {
		name := "/"
		if len(x.Prefix) > 0 {
			name = Key(x.Prefix)
		}
		says, class, because := verdict(x)
		rows = append(rows, []string{name, says, class, because})
	}
	if err := p.table(rows...); err != nil {
		return err
	}
	word := "allowed"
	if !allowed {
		word = "denied"
	}
	_, err := fmt.Fprintf(p.Out, "\n%s %s by %x: %s\n", verb, Key(key), r.Caller[:4], word)
	return err
}

// Signal writes a signal that came: in JSON an object on one line.
func (p Printer) Signal(x *aweighv1.SignalsResponse) error {
	switch p.Format {
	case JSON:
		out := struct {
			Verb        string  `json:"verb"`
			Key         *string `json:"key,omitempty"`
			KeyBase64   []byte  `json:"key_base64,omitempty"`
			Value       *string `json:"value,omitempty"`
			ValueBase64 []byte  `json:"value_base64,omitempty"`
			Author      string  `json:"author"`
			AuthorName  string  `json:"author_name,omitempty"`
			Scope       string  `json:"scope"`
			TimeNs      int64   `json:"time_ns"`
			Lost        uint64  `json:"lost,omitempty"` // before it, because this program was too slow
		}{Verb: x.Verb, Author: hex.EncodeToString(x.Author), AuthorName: x.AuthorName, Scope: hex.EncodeToString(x.Scope), TimeNs: x.TimeNs, Lost: x.Lost}
		out.Key, out.KeyBase64 = bytesField(x.Key)
		out.Value, out.ValueBase64 = bytesField(x.Value)
		return p.line(out)
	case Value, Raw:
		return p.alone(x.Value)
	}
	who := x.AuthorName
	if who == "" {
		who = hex.EncodeToString(x.Author[:min(4, len(x.Author))])
	}
	line := fmt.Sprintf("%s  %s = %s  (by %s, %s)", x.Verb, Key(x.Key), text(x.Value), Line(who), instant(x.TimeNs))
	if x.Lost > 0 {
		line += fmt.Sprintf("  (%d before it were lost)", x.Lost)
	}
	_, err := fmt.Fprintln(p.Out, line)
	return err
}
