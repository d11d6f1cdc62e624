package show

import (
	"fmt"
	"strings"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
)

// movedJSON is an alias that was moved.
type movedJSON struct {
	Key       *string `json:"key,omitempty"`
	KeyBase64 []byte  `json:"key_base64,omitempty"`
	To        *string `json:"to,omitempty"`
	ToBase64  []byte  `json:"to_base64,omitempty"`
	UID       string  `json:"uid"`
	UntilNs   int64   `json:"until_ns"`
}

func movedOf(m *aweighv1.Moved) *movedJSON {
	if m == nil {
		return nil
	}
	out := &movedJSON{UID: m.Uid, UntilNs: m.UntilNs}
	out.Key, out.KeyBase64 = bytesField(m.Key)
	out.To, out.ToBase64 = bytesField(m.To)
	return out
}

// Resolved writes the object of a name: the output of Range for a key, and more.
func (p Printer) Resolved(r *aweighv1.ResolveResponse) error {
	kvs := []*aweighv1.KeyValue{r.Kv}
	switch p.Format {
	case JSON:
		type object struct {
			Version int64      `json:"version"` // of the object, as it was read
			Newest  int64      `json:"newest_version"`
			Claims  bool       `json:"claims_alias"`
			Moved   *movedJSON `json:"moved,omitempty"`
		}
		return p.JSON(struct {
			rangeJSON
			Object object `json:"object"`
		}{rangeJSON{headerOf(r.Header), kvsJSON(kvs), 1, false}, object{r.Number, r.Newest, r.Claims, movedOf(r.Moved)}})
	case Value, Raw:
		return p.values(kvs)
	}
	return p.table(
		[]string{"key", Key(r.Key)},
		[]string{"value", text(r.Kv.Value)},
		[]string{"version", fmt.Sprintf("%d of %d", r.Number, r.Newest)},
		[]string{"revision", fmt.Sprint(r.Kv.ModRevision)},
		[]string{"uid", r.Uid},
		[]string{"read", readAt(r.Header)},
	)
}

// Named writes the answer to a change of names.
func (p Printer) Named(req *aweighv1.NameRequest, r *aweighv1.NameResponse) error {
	kind := strings.ToLower(strings.TrimPrefix(req.Kind.String(), "KIND_"))
	if p.Format == JSON {
		out := struct {
			Header    header  `json:"header"`
			Change    string  `json:"change"` // bind, move, unbind, fork or rollback
			UID       string  `json:"uid,omitempty"`
			Key       *string `json:"key,omitempty"`
			KeyBase64 []byte  `json:"key_base64,omitempty"`
			To        *string `json:"to,omitempty"`
			ToBase64  []byte  `json:"to_base64,omitempty"`
			UntilNs   int64   `json:"until_ns,omitempty"`
			Repeated  bool    `json:"repeated,omitempty"` // answered from the record
			Sent      bool    `json:"sent,omitempty"`     // to another scope, which received the object
		}{Header: headerJSON(r.Header), Change: kind, UID: r.Uid, UntilNs: req.UntilNs, Repeated: r.Repeated, Sent: r.Sent}
		if r.Sent {
			out.UntilNs = 0
		}
		if len(req.Key) > 0 {
			out.Key, out.KeyBase64 = bytesField(req.Key)
		}
		if len(req.To) > 0 {
			out.To, out.ToBase64 = bytesField(req.To)
		}
		return p.JSON(out)
	}
	if r.Repeated {
		return p.done(r.Header)
	}
	what := fmt.Sprintf("%s names %s", Key(req.To), r.Uid)
	switch req.Kind {
	case aweighv1.NameRequest_KIND_MOVE:
		what += ", and " + Key(req.Key) + " no more"
		switch {
		case r.Sent:
			what += " (the object went to another scope, with its history; no redirect stays)"
		case req.UntilNs != 0:
			what += fmt.Sprintf(" (as an alias it leads there until %s; the key is deleted)", instant(req.UntilNs))
		}
	case aweighv1.NameRequest_KIND_UNBIND:
		what = fmt.Sprintf("%s names %s no more", Key(req.Key), r.Uid)
	case aweighv1.NameRequest_KIND_ROLLBACK:
		what = fmt.Sprintf("%s shows the content as of revision %d again", Key(req.Key), req.Place.GetRevision())
	}
	_, err := fmt.Fprintf(p.Out, "OK  %s; revision %d, final in block %d\n", what, r.Header.GetRevision(), r.Header.GetHeight())
	return err
}

// Object writes the record of a UID.
func (p Printer) Object(r *aweighv1.ObjectResponse) error {
	if p.Format == JSON {
		out := struct {
			Header         header      `json:"header"`
			UID            string      `json:"uid"`
			Retired        bool        `json:"retired"`
			Aliases        []*keyValue `json:"aliases"` // keys without values
			Parent         string      `json:"parent,omitempty"`
			ParentRevision int64       `json:"parent_revision,omitempty"`
			Entries        []entryJSON `json:"entries"`
			More           bool        `json:"more"`
		}{headerJSON(r.Header), r.Uid, len(r.Aliases) == 0, []*keyValue{}, r.Parent, r.Place.GetRevision(), entriesJSON(r.Entries), r.More}
		for _, k := range r.Aliases {
			out.Aliases = append(out.Aliases, kvJSON(&aweighv1.KeyValue{Key: k}))
		}
		return p.JSON(out)
	}
	rows := [][]string{{"uid", r.Uid}}
	for _, k := range r.Aliases {
		rows = append(rows, []string{"alias", Key(k)})
	}
	if len(r.Aliases) == 0 {
		rows = append(rows, []string{"alias", "none: it is retired"})
	}
	if r.Parent != "" {
		rows = append(rows, []string{"forked", fmt.Sprintf("from %s, %s as of revision %d", r.Parent, Key(r.Place.GetKey()), r.Place.GetRevision())})
	}
	rows = append(rows, []string{"read", readAt(r.Header)})
	if err := p.table(rows...); err != nil {
		return err
	}
	fmt.Fprintln(p.Out)
	return p.entries(r.Entries, r.More, true)
}

// Aliases writes keys with the objects that they name, and those that were moved.
func (p Printer) Aliases(keys *aweighv1.RangeResponse, moved *aweighv1.RedirectsResponse) error {
	if p.Format == JSON {
		out := struct {
			Header    header       `json:"header"`
			Aliases   []*keyValue  `json:"aliases"` // keys without values
			Count     int64        `json:"count"`
			More      bool         `json:"more"`
			Moved     []*movedJSON `json:"moved"`
			MoreMoved bool         `json:"more_moved"`
		}{headerJSON(keys.Header), []*keyValue{}, keys.Count, keys.More, []*movedJSON{}, moved.More}
		for _, kv := range keys.Kvs {
			out.Aliases = append(out.Aliases, kvJSON(&aweighv1.KeyValue{Key: kv.Key, Uid: kv.Uid}))
		}
		for _, m := range moved.Moved {
			out.Moved = append(out.Moved, movedOf(m))
		}
		return p.JSON(out)
	}
	rows := [][]string{{"ALIAS", "UID", "MOVED"}}
	for _, kv := range keys.Kvs {
		rows = append(rows, []string{Key(kv.Key), kv.Uid, ""})
	}
	for _, m := range moved.Moved {
		rows = append(rows, []string{Key(m.Key), m.Uid, fmt.Sprintf("to %s, where the alias leads until %s", Key(m.To), instant(m.UntilNs))})
	}
	return p.table(rows...)
}
