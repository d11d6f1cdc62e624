package show

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/scope"
)

type authorJSON struct {
	Name           string    `json:"name"`
	Who            string    `json:"who"` // anchors, any, listed or key
	Key            string    `json:"key,omitempty"`
	Prefixes       *[]string `json:"prefixes,omitempty"`        // none: all keys
	PrefixesBase64 [][]byte  `json:"prefixes_base64,omitempty"` // in place of prefixes, if one of them is no text
	Verbs          []string  `json:"verbs"`                     // none: everything
	List           *string   `json:"list,omitempty"`            // where the state lists peers
	ListBase64     []byte    `json:"list_base64,omitempty"`

	Quota *quotaJSON `json:"quota,omitempty"`
	Used  *usageJSON `json:"used,omitempty"` // of it; where it has none, what is counted yet
}

func entryOf(a *scope.Author) authorJSON {
	texts := []string{}
	out := authorJSON{Name: a.Name, Who: a.Who.String(), Prefixes: &texts, Verbs: append([]string{}, a.Verbs...)}
	if a.Who == scope.OneKey {
		out.Key = a.Key.String()
	}
	if len(a.List) > 0 {
		out.List, out.ListBase64 = bytesField(a.List)
	}
	out.Quota = quotaOf(a)
	for _, prefix := range a.Prefixes {
		text, _ := bytesField(prefix)
		if text == nil {
			out.Prefixes, out.PrefixesBase64 = nil, a.Prefixes
			break
		}
		texts = append(texts, *text)
	}
	return out
}

// authorRow is a row of a table of authors.
func authorRow(a *scope.Author) []string {
	who := a.Who.String()
	if a.Who == scope.OneKey {
		who = a.Key.String()
	}
	if a.Who == scope.OnList {
		who = "listed below " + Key(a.List)
	}
	prefixes, verbs := "all keys", "everything"
	if len(a.Prefixes) > 0 {
		var all []string
		for _, prefix := range a.Prefixes {
			all = append(all, Key(prefix))
		}
		prefixes = strings.Join(all, " ")
	}
	if len(a.Verbs) > 0 {
		verbs = strings.Join(a.Verbs, ", ")
	}
	return []string{a.Name, who, prefixes, verbs}
}

// Authors writes entries of a policy's authors, with what is used of their quotas.
func (p Printer) Authors(h *aweighv1.Header, all []scope.Author, usages []*aweighv1.Usage) error {
	if p.Format == JSON {
		out := struct {
			Header  header       `json:"header"`
			Authors []authorJSON `json:"authors"`
		}{Header: headerJSON(h), Authors: []authorJSON{}}
		for i := range all {
			entry := entryOf(&all[i])
			entry.Used = usedOf(&all[i], usageOf(usages, all[i].Name))
			out.Authors = append(out.Authors, entry)
		}
		return p.JSON(out)
	}
	rows := [][]string{{"AUTHOR", "WHO", "KEYS", "MAY"}}
	quotas := false
	for i := range all {
		rows = append(rows, authorRow(&all[i]))
		quotas = quotas || all[i].Quota != (scope.Quota{}) || usageOf(usages, all[i].Name) != nil
	}
	if quotas {
		rows[0] = append(rows[0], "QUOTA")
		for i := range all {
			rows[i+1] = append(rows[i+1], quotaText(&all[i], usageOf(usages, all[i].Name)))
		}
	}
	return p.table(rows...)
}

// May is whether an author may do something, and why.
type May struct {
	Verb   string
	Key    []byte
	Caller []byte           // hash of the author's key
	Name   string           // of the author, as it was asked for; "" for the node that answers
	Scope  []byte           // prefix of the scope that decides
	Entry  *scope.Author    // that permits it; nil: none does
	Under  []byte           // the name of the object that decides: the first without an entry
	Barred string           // why the author's token does not permit it; "": it does, or there is none
	Judged *aweighv1.Said   // by the scope that decides
	Above  []*aweighv1.Said // by the scopes above it that have a say, broadest first

	Approval *scope.Approval // that it waits for; nil: it applies at once
	Removal  *scope.Approval // that a change of names waits for which moves or removes the name; nil: the same
	Seconds  []string        // of a step-up: names of the approvers that may be the second person
	NoWay    string          // why it cannot wait for the approval; "": it can
}

// OK reports whether the author may do it, at once or with approval.
func (m *May) OK() bool {
	return m.Barred == "" && m.Entry != nil && m.denies() == nil && m.NoWay == ""
}

// denies is the first scope on the way whose rule denies it, nil if none does.
func (m *May) denies() *aweighv1.Said {
	for _, x := range slices.Concat(m.Above, []*aweighv1.Said{m.Judged}) {
		if !x.Allowed {
			return x
		}
	}
	return nil
}

// Waits reports whether the author may do it with approval alone.
func (m *May) Waits() bool { return m.OK() && m.Approval != nil }

// approvalJSON is what a change that may be made waits for.
type approvalJSON struct {
	StepUp   bool     `json:"step_up"`
	Seconds  []string `json:"seconds,omitempty"` // of a step-up: one of them approves
	WindowNs int64    `json:"window_ns"`
	Rule     string   `json:"rule"` // in words
}

// with is the condition of a verdict in words: "with the approval of a second person: bob or carol, within 5m0s".
func (m *May) with() string {
	if !m.Waits() {
		return ""
	}
	if m.Approval.StepUp {
		return fmt.Sprintf(", with the approval of a second person: %s, within %v", Line(strings.Join(m.Seconds, " or ")), m.Approval.Window)
	}
	return ", with approval of " + Line(m.Approval.String())
}

// May writes a verdict on an author. The header is that of the policy.
func (p Printer) May(h *aweighv1.Header, policy string, m *May) error {
	if p.Format == JSON {
		out := struct {
			Header    header        `json:"header"`
			Allowed   bool          `json:"allowed"`
			Verb      string        `json:"verb"`
			Key       *string       `json:"key,omitempty"`
			KeyBase64 []byte        `json:"key_base64,omitempty"`
			Caller    string        `json:"caller"`
			Name      string        `json:"name,omitempty"`
			Policy    string        `json:"policy"`
			Author    *authorJSON   `json:"author,omitempty"`   // the entry that permits it
			Token     string        `json:"token,omitempty"`    // why the token does not permit it
			Rules     saidJSON      `json:"rules"`              // of the scope that decides
			Above     []saidJSON    `json:"above,omitempty"`    // of the scopes above it that have a say, broadest first
			Approval  *approvalJSON `json:"approval,omitempty"` // that it waits for; none: it applies at once
			Removal   *approvalJSON `json:"removal,omitempty"`  // as approval, of a change of names that moves or removes the name
			Refused   string        `json:"refused,omitempty"`  // why it cannot wait for the approval that the policy asks for
		}{Refused: m.NoWay, Header: headerJSON(h), Allowed: m.OK(), Verb: m.Verb, Token: m.Barred, Caller: hex.EncodeToString(m.Caller), Name: m.Name, Policy: policy, Rules: saidOf(m.Judged)}
		out.Key, out.KeyBase64 = bytesField(m.Key)
		if a := m.Approval; m.Waits() {
			out.Approval = &approvalJSON{a.StepUp, m.Seconds, int64(a.Window), a.String()}
		}
		if a := m.Removal; m.OK() && a != nil {
			out.Removal = &approvalJSON{StepUp: a.StepUp, WindowNs: int64(a.Window), Rule: a.String()}
		}
		if m.Entry != nil {
			a := entryOf(m.Entry)
			out.Author = &a
		}
		for _, x := range m.Above {
			out.Above = append(out.Above, saidOf(x))
		}
		return p.JSON(out)
	}
	answer, why := "yes", ""
	switch denied := m.denies(); {
	case m.Barred != "":
		answer, why = "no", m.Barred
	case m.Entry == nil && len(m.Under) > 0 && !bytes.Equal(m.Under, m.Key):
		answer, why = "no", fmt.Sprintf("no entry of the policy's authors permits it under %s, another name of the object", Key(m.Under))
	case m.Entry == nil:
		answer, why = "no", "no entry of the policy's authors permits it"
	case denied == m.Judged:
		_, _, why = verdict(denied)
		answer = "no"
	case denied != nil:
		answer, why = "no", fmt.Sprintf("scope %s, above the one that decides, denies it", scopeText(denied.Prefix))
	case m.NoWay != "":
		answer, why = "no", m.NoWay
	default:
		why = fmt.Sprintf("author %s permits it", m.Entry.Name)
		if m.Judged.Rule != "" {
			why += ", and so does the rule " + m.Judged.Rule
		}
		if m.Removal != nil {
			why += "; to move or to remove the name waits for approval of " + Line(m.Removal.String())
		}
	}
	who := m.Name
	if who == "" {
		who = fmt.Sprintf("%x", m.Caller[:min(4, len(m.Caller))])
	}
	answer += m.with()
	_, err := fmt.Fprintf(p.Out, "%s  %s may%s %s %s: %s\n     by policy %.8s of scope %s, epoch %d, revision %d\n", answer, who, map[bool]string{false: " not"}[m.OK()], m.Verb, Key(m.Key), why,
		policy, scopeText(m.Scope), h.GetEpoch(), h.GetRevision())
	for i := 0; i < len(m.Above) && err == nil; i++ {
		says, _, because := verdict(m.Above[i])
		_, err = fmt.Fprintf(p.Out, "     scope %s above: %s, %s\n", scopeText(m.Above[i].Prefix), says, because)
	}
	return err
}

// scopeText names a scope by its prefix.
func scopeText(prefix []byte) string {
	if len(prefix) == 0 {
		return "/"
	}
	return Key(prefix)
}
