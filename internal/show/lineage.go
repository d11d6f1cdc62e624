package show

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/aweigh/aweigh"
	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/internal/form"
	"github.com/aweigh/aweigh/lineage"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/quorum"
	"github.com/aweigh/aweigh/scope"
)

type entryJSON struct {
	Index         int64   `json:"index"`
	Class         string  `json:"class"`
	Revision      int64   `json:"revision"`
	Height        uint64  `json:"height"`
	Scope         string  `json:"scope"` // whose block it is
	Block         string  `json:"block"`
	TimeNs        int64   `json:"time_ns"`
	Mutation      string  `json:"mutation"`
	Author        string  `json:"author"`
	AuthorName    string  `json:"author_name,omitempty"`
	Principal     string  `json:"principal,omitempty"` // the key whose rights the author used, by a token
	PrincipalName string  `json:"principal_name,omitempty"`
	UID           string  `json:"uid"`
	Version       int64   `json:"version,omitempty"` // of the object, that this change wrote
	Key           *string `json:"key,omitempty"`
	KeyBase64     []byte  `json:"key_base64,omitempty"` // if the key is not UTF-8
	Justification string  `json:"justification,omitempty"`
	Caller        string  `json:"caller,omitempty"` // for whom the author made it, as the author states
	Reason        string  `json:"reason,omitempty"`
	MergedFrom    *placed `json:"merged_from,omitempty"` // the other parent of a merge
}

// placed is a version of an object.
type placed struct {
	UID       string  `json:"uid,omitempty"`
	Key       *string `json:"key,omitempty"`
	KeyBase64 []byte  `json:"key_base64,omitempty"`
	Revision  int64   `json:"revision"`
}

func placedAt(key []byte, revision int64) *placed {
	x := &placed{Revision: revision}
	x.Key, x.KeyBase64 = bytesField(key)
	return x
}

// History writes what happened to an object.
func (p Printer) History(r *aweighv1.HistoryResponse) error {
	if p.Format == JSON {
		out := struct {
			Header  header      `json:"header"`
			Entries []entryJSON `json:"entries"`
			More    bool        `json:"more"`
			Before  string      `json:"before_uid,omitempty"`
		}{headerJSON(r.Header), entriesJSON(r.Entries), r.More, r.BeforeUid}
		return p.JSON(out)
	}
	keys := make(map[string]bool) // an object with one name needs no column for it
	for _, e := range r.Entries {
		keys[string(e.Key)] = true
	}
	if err := p.entries(r.Entries, r.More, len(keys) > 1); err != nil || r.BeforeUid == "" {
		return err
	}
	_, err := fmt.Fprintf(p.Out, "before, the key named another object; see \"aweigh uid %s\"\n", r.BeforeUid)
	return err
}

func entriesJSON(entries []*aweighv1.Entry) []entryJSON {
	out := []entryJSON{}
	for _, e := range entries {
		x := entryJSON{
			Index: e.Index, Class: e.Class, Revision: e.Revision, Height: e.Height, Scope: hex.EncodeToString(e.Scope), Block: hex.EncodeToString(e.Block),
			TimeNs: e.TimeNs, Mutation: hex.EncodeToString(e.Mutation), Author: hex.EncodeToString(e.Author),
			AuthorName: e.AuthorName, Principal: hex.EncodeToString(e.Principal), PrincipalName: e.PrincipalName, UID: e.Uid, Version: e.Version, Justification: e.Justification, Caller: e.Caller, Reason: e.Reason,
		}
		if len(e.Key) > 0 {
			x.Key, x.KeyBase64 = bytesField(e.Key)
		}
		if p, ok := mergedFrom(e); ok {
			x.MergedFrom = &placed{UID: p.Object.String(), Revision: p.Revision}
			x.MergedFrom.Key, x.MergedFrom.KeyBase64 = bytesField(p.Key)
		}
		out = append(out, x)
	}
	return out
}

// mergedFrom returns the other parent of an entry; ok is false if the entry is of no merge. The reason is the chain's,
// and not the author's words.
func mergedFrom(e *aweighv1.Entry) (p scope.Parent, ok bool) {
	if e.Class != lineage.Insert.String() && e.Class != lineage.Update.String() {
		return p, false
	}
	return scope.ParseMerged(e.Reason)
}

// called is the name of an author, or the beginning of its identity.
func called(name string, id []byte) string {
	return cmp.Or(brief(name), short(id))
}

// entries writes changes of an object, with the keys under which they happened if
// keyed is set.
func (p Printer) entries(entries []*aweighv1.Entry, more, keyed bool) error {
	rows := [][]string{{"REVISION", "VERSION", "CHANGE", "BY", "TIME", "BLOCK", "BECAUSE"}}
	if keyed {
		rows[0] = slices.Insert(rows[0], 3, "KEY")
	}
	several := slices.ContainsFunc(entries, func(e *aweighv1.Entry) bool { return !bytes.Equal(e.Scope, entries[0].Scope) })
	for _, e := range entries {
		block := fmt.Sprint(e.Height)
		if several {
			block += " of " + short(e.Scope)
		}
		by, version := called(e.AuthorName, e.Author), ""
		if len(e.Principal) > 0 {
			by = called(e.PrincipalName, e.Principal) + " by " + by
		}
		by = onBehalf(by, e.Caller)
		if len(bytes.Trim(e.Mutation, "\x00")) == 0 {
			by = "-" // no author: its time had come
		}
		if e.Version > 0 {
			version = fmt.Sprint(e.Version)
		}
		change := e.Class
		if _, merged := mergedFrom(e); merged {
			change = "merge"
		}
		row := []string{fmt.Sprint(e.Revision), version, change, by, instant(e.TimeNs), block, because(e.Reason, e.Justification)}
		if keyed {
			row = slices.Insert(row, 3, Key(e.Key))
		}
		rows = append(rows, row)
	}
	if err := p.table(rows...); err != nil {
		return err
	}
	if more {
		fmt.Fprintln(p.Out, "… and older ones; ask for more with --limit")
	}
	return nil
}

// onBehalf is an author, and the caller for whom it acted as it states, if any.
func onBehalf(author, caller string) string {
	if caller == "" {
		return author
	}
	return author + " for " + shortened(caller, 2*mostName)
}

// because is why something happened: by the rules, and in the author's words.
func because(reason, justification string) string {
	if reason != "" && justification != "" {
		return reason + ": " + justification
	}
	return reason + justification
}

type attestationJSON = form.Attestation

func attestation(a scope.Attestation) attestationJSON { return form.AttestationOf(a) }

type whyJSON struct {
	Network       string          `json:"network"`
	NetworkName   string          `json:"network_name"`
	Pinned        bool            `json:"pinned"` // the network was compared with one named from elsewhere
	Class         string          `json:"class"`
	Revision      int64           `json:"revision"`
	Kv            *keyValue       `json:"kv,omitempty"`
	UID           string          `json:"uid"`
	Author        string          `json:"author"`    // key
	AuthorID      string          `json:"author_id"` // its hash, the author that History names
	AuthorName    string          `json:"author_name,omitempty"`
	Mutation      string          `json:"mutation"`
	Justification string          `json:"justification,omitempty"`
	Caller        string          `json:"caller,omitempty"`  // for whom the author made it, as the author states
	Grants        [][]byte        `json:"grants,omitempty"`  // canonical CBOR of each scope.Grant by which the author acted
	Granted       []grantedJSON   `json:"granted,omitempty"` // the same, for people: the first is of the author that it acted for
	Reason        string          `json:"reason,omitempty"`  // why it was deleted without a transaction, or the other parent of a merge
	Rule          string          `json:"rule"`
	Needed        uint64          `json:"needed_weight"`
	OneRound      bool            `json:"one_round,omitempty"` // of votes made the block final, as mode fast allows
	Origin        attestationJSON `json:"origin"`              // the block that carried the change
	Head          attestationJSON `json:"head"`                // a later one, whose lineage includes it
	Approved      *approvedJSON   `json:"approved,omitempty"`
	TakenFrom     string          `json:"taken_from,omitempty"` // the scope from which the key was taken over; there is no origin then
}

// grantedJSON is a grant by which an author acted.
type grantedJSON struct {
	Name   string `json:"name"`
	By     string `json:"by"` // the key that signed it
	ByName string `json:"by_name,omitempty"`
	To     string `json:"to"` // the key that it is for
}

func grantedBy(g *scope.Genesis, r *scope.Report) (all []grantedJSON) {
	for _, raw := range r.Mutation.Grants {
		var x scope.Grant
		if canon.Decode(raw, &x) == nil {
			all = append(all, grantedJSON{x.Name, x.By.String(), nameUnder(g, r, x.By.ID()), x.To.String()})
		}
	}
	return all
}

// nameUnder is the name of an author in the epoch of a change: of an anchor or its node, or of an entry of the policy.
func nameUnder(g *scope.Genesis, r *scope.Report, id aweigh.Hash) string {
	if name := cmp.Or(authorName(r.Under.Roster.Anchors, id), authorName(g.Anchors, id)); name != "" {
		return name
	}
	for i := range r.Under.Policy.Authors {
		if a := &r.Under.Policy.Authors[i]; a.Who == scope.OneKey && a.Key.ID() == id {
			return a.Name
		}
	}
	return ""
}

// Why writes the content of a verified proof; pinned reports whether its
// network was compared with one known from elsewhere.
func (p Printer) Why(g scope.Genesis, r scope.Report, pinned bool) error {
	rules := r.Under.Policy.Rules
	rule := rules.Finalize
	var authorID aweigh.Hash // none, if no author asked for it
	if !r.Entry.Mutation.IsZero() {
		authorID = r.Author.ID()
	}
	author := nameUnder(&g, &r, authorID)
	granted := grantedBy(&g, &r)
	if p.Format == JSON {
		out := whyJSON{
			Network: g.Network().String(), NetworkName: g.Name, Pinned: pinned, Class: r.Entry.Class.String(), Revision: r.Entry.Revision,
			UID: r.Entry.Object.String(), Author: r.Author.String(), AuthorID: authorID.String(), AuthorName: author, Mutation: r.Entry.Mutation.String(),
			Justification: r.Mutation.Justification, Caller: r.Mutation.Caller, Grants: r.Mutation.Grants, Granted: granted, Reason: r.Entry.Reason, Rule: rule.String(), Needed: r.Origin.Needed, OneRound: r.Origin.OneRound,
			Origin: attestation(r.Origin), Head: attestation(r.Head), Approved: approvedOf(r.Approved),
		}
		if r.Taken != nil {
			out.TakenFrom, out.Needed, out.OneRound = r.Taken.Parent.String(), r.Head.Needed, r.Head.OneRound
		}
		if r.Kv != nil {
			out.Kv = kvJSON(&aweighv1.KeyValue{
				Key: r.Kv.Key, Value: r.Kv.Value, CreateRevision: r.Kv.CreateRevision, ModRevision: r.Kv.ModRevision,
				Version: r.Kv.Version, Uid: r.Kv.UID.String(),
			})
		}
		return p.JSON(out)
	}
	if r.Kv != nil {
		fmt.Fprintf(p.Out, "%s = %s\n", Key(r.Entry.Key), text(r.Kv.Value))
	} else if r.Entry.Class == lineage.AliasUnbind {
		fmt.Fprintf(p.Out, "%s names nothing any more\n", Key(r.Entry.Key))
	} else {
		fmt.Fprintf(p.Out, "%s was deleted\n", Key(r.Entry.Key))
	}
	if author == "" {
		author = authorID.Short() // as History has it
	}
	author += "  " + r.Author.String()
	if r.Entry.Mutation.IsZero() {
		author = "no author: its time had come"
		if from, ok := scope.ParseHome(r.Entry.Reason); ok {
			author = fmt.Sprintf("no author: it came home from scope %s; \"aweigh history\" goes on there", from.Short())
		}
	}
	signed := r.Origin
	rows := [][]string{
		{"  change", fmt.Sprintf("%s in revision %d of object %s", r.Entry.Class, r.Entry.Revision, r.Entry.Object)},
	}
	if d := g.Descent; d != nil {
		rows = append(rows, []string{"  scope", fmt.Sprintf("%s  %s, which block %d of %s delegated to it", Key(d.Prefix), g.Hash().Short(), d.Height, d.Parent.Short())})
	}
	if d := r.Taken; d != nil {
		signed = r.Head
		rows = append(rows, []string{"  from", fmt.Sprintf("scope %s, whose block %d delegated %s; \"aweigh history\" goes on there", d.Parent.Short(), d.Height, Key(d.Prefix))})
	} else {
		rows = append(rows, []string{"  author", author}, []string{when(&r), fmt.Sprintf("%s, block %d %s of epoch %d", instant(int64(r.Origin.Time)), r.Origin.Height, r.Origin.Block.Short(), r.Origin.Epoch)})
	}
	if r.Mutation.Caller != "" {
		rows = append(rows, []string{"  caller", r.Mutation.Caller + ", as the author states; nothing proves it"})
	}
	for i, x := range granted {
		by := x.By
		switch {
		case x.ByName != "":
			by = fmt.Sprintf("%s (%s)", x.ByName, x.By)
		case i > 0:
			by = fmt.Sprintf("the holder of %s (%s)", granted[i-1].Name, x.By)
		}
		if i == 0 {
			rows = append(rows, []string{"  acts for", by})
		}
		rows = append(rows, []string{"  by grant", fmt.Sprintf("%s, which %s signed", x.Name, by)})
	}
	if r.Approved != nil {
		rows = append(rows, []string{"  applied", fmt.Sprintf("in block %d, with the approvals below", r.Approved.Height)})
	}
	if why := because(r.Entry.Reason, r.Mutation.Justification); why != "" {
		rows = append(rows, []string{"  because", why})
	}
	rows = append(rows, []string{"  lineage", fmt.Sprintf("included in that of block %d %s of epoch %d, which anchors of weight %d of %d made final",
		r.Head.Height, r.Head.Block.Short(), r.Head.Epoch, r.Head.Weight, r.Head.Total)})
	if err := p.table(rows...); err != nil {
		return err
	}
	fmt.Fprintln(p.Out)
	rows = [][]string{{"SIGNED BY", "ID", "WEIGHT"}}
	for _, s := range signed.Signers {
		rows = append(rows, []string{brief(s.Name), s.Anchor.Short(), fmt.Sprint(s.Weight)})
	}
	if err := p.table(rows...); err != nil {
		return err
	}
	by := Count(len(signed.Signers), "anchor")
	if r.Under.Number == signed.Epoch {
		by = fmt.Sprintf("%d of %s", len(signed.Signers), Count(r.Under.Roster.Weights.Len(), "anchor"))
	}
	words := ruleWords(rule)
	if signed.OneRound {
		words = "in one round of votes"
	}
	_, err := fmt.Fprintf(p.Out, "\n%s with weight %d of %d in epoch %d; the rule then (%s, %s) asks for %d\n",
		by, signed.Weight, signed.Total, signed.Epoch, rules.Mode, words, signed.Needed)
	if err == nil && r.Approved != nil {
		err = p.approvals(r.Approved)
	}
	return err
}

func ruleWords(r quorum.Rule) string {
	s := fmt.Sprintf("more than %d/%d", r.Num, r.Den)
	if r.MinAnchors > 0 {
		s += " and at least " + Count(r.MinAnchors, "anchor")
	}
	return s
}

// authorName is the name of the anchor whose node an author is.
func authorName(anchors []scope.Anchor, author aweigh.Hash) string {
	for _, a := range anchors {
		if machine.AuthorOf(machine.Peer(a.Peer)) == author {
			return a.Name
		}
	}
	return ""
}

// when is the time of the mutation's block.
func when(r *scope.Report) string {
	if r.Approved != nil {
		return "  proposed"
	}
	return "  time"
}
