package show

import (
	"fmt"
	"time"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
)

// Put writes the answer to a put.
func (p Printer) Put(r *aweighv1.PutResponse) error {
	switch p.Format {
	case JSON:
		return p.JSON(struct {
			Header   header    `json:"header"`
			UID      string    `json:"uid,omitempty"`
			Prev     *keyValue `json:"prev_kv,omitempty"`
			Repeated bool      `json:"repeated,omitempty"` // answered from the record
		}{headerJSON(r.Header), r.Uid, kvJSON(r.PrevKv), r.Repeated})
	case Value, Raw:
		if r.PrevKv != nil {
			return p.value(r.PrevKv)
		}
		return nil
	}
	if r.Repeated {
		return p.done(r.Header)
	}
	fmt.Fprintf(p.Out, "OK  %s\n", standsAt(r.Header))
	if r.PrevKv != nil {
		fmt.Fprintf(p.Out, "before: %s\n", text(r.PrevKv.Value))
	}
	return nil
}

// done writes that a request had become final before it was made again.
func (p Printer) done(h *aweighv1.Header) error {
	_, err := fmt.Fprintf(p.Out, "done already, revision %d, block %d\n", h.GetRevision(), h.GetHeight())
	return err
}

// Delete writes the answer to a delete.
func (p Printer) Delete(r *aweighv1.DeleteResponse) error {
	switch p.Format {
	case JSON:
		return p.JSON(struct {
			Header   header      `json:"header"`
			Deleted  int64       `json:"deleted"`
			Prev     []*keyValue `json:"prev_kvs,omitempty"`
			Repeated bool        `json:"repeated,omitempty"` // answered from the record, without the number
		}{headerJSON(r.Header), r.Deleted, kvsJSON(r.PrevKvs), r.Repeated})
	case Value, Raw:
		return p.values(r.PrevKvs)
	}
	if r.Repeated {
		return p.done(r.Header)
	}
	fmt.Fprintf(p.Out, "%d deleted  %s\n", r.Deleted, standsAt(r.Header))
	for _, kv := range r.PrevKvs {
		fmt.Fprintf(p.Out, "before: %s = %s\n", Key(kv.Key), text(kv.Value))
	}
	return nil
}

type rangeJSON struct {
	Header *header     `json:"header,omitempty"` // missing within another answer
	Kvs    []*keyValue `json:"kvs"`
	Count  int64       `json:"count"`
	More   bool        `json:"more"`
}

func rangeOf(r *aweighv1.RangeResponse) rangeJSON {
	return rangeJSON{headerOf(r.Header), kvsJSON(r.Kvs), r.Count, r.More}
}

// Range writes the answer to a range. A single key asked for shows in full.
func (p Printer) Range(r *aweighv1.RangeResponse, single bool) error {
	switch {
	case p.Format == JSON:
		return p.JSON(rangeOf(r))
	case p.Format.OfValues():
		return p.values(r.Kvs)
	case single && len(r.Kvs) == 1:
		kv := r.Kvs[0]
		return p.table(
			[]string{"key", Key(kv.Key)},
			[]string{"value", text(kv.Value)},
			[]string{"revision", fmt.Sprintf("%d (created in %d), version %d", kv.ModRevision, kv.CreateRevision, kv.Version)},
			[]string{"uid", kv.Uid},
			[]string{"read", readAt(r.Header)},
		)
	}
	rows := [][]string{{"KEY", "VALUE", "VERSION", "REVISION"}}
	for _, kv := range r.Kvs {
		rows = append(rows, []string{Key(kv.Key), text(kv.Value), fmt.Sprint(kv.Version), fmt.Sprint(kv.ModRevision)})
	}
	return p.table(rows...)
}

// Keys writes the keys of a range alone.
func (p Printer) Keys(r *aweighv1.RangeResponse) error {
	if p.Format == JSON {
		out := rangeOf(r)
		for _, kv := range out.Kvs { // values were not read
			kv.Value, kv.ValueBase64 = nil, nil
		}
		return p.JSON(out)
	}
	for _, kv := range r.Kvs {
		if _, err := fmt.Fprintln(p.Out, Key(kv.Key)); err != nil {
			return err
		}
	}
	return nil
}

// standsAt states where a change stands: in a final block, or in one of an island.
func standsAt(h *aweighv1.Header) string {
	if i := h.GetIsland(); i != nil {
		return fmt.Sprintf("provisional: revision %d, in block %d of island %s", h.GetRevision(), h.GetHeight(), short(i.Id))
	}
	return fmt.Sprintf("revision %d, final in block %d", h.GetRevision(), h.GetHeight())
}

func readAt(h *aweighv1.Header) string {
	if i := h.GetIsland(); i != nil {
		return fmt.Sprintf("at block %d of island %s, revision %d (provisional)", h.GetHeight(), short(i.Id), h.GetRevision())
	}
	how := "this node alone, maybe old"
	if age := time.Duration(h.GetAgeNs()); age > 0 {
		how = fmt.Sprintf("as its scope's anchors said %s ago", age.Round(time.Millisecond))
	}
	if h.GetLinearizable() {
		how = "linearizable"
	}
	return fmt.Sprintf("at block %d, revision %d (%s)", h.GetHeight(), h.GetRevision(), how)
}

func (p Printer) values(kvs []*aweighv1.KeyValue) error {
	for _, kv := range kvs {
		if err := p.value(kv); err != nil {
			return err
		}
	}
	return nil
}

func (p Printer) value(kv *aweighv1.KeyValue) error { return p.alone(kv.Value) }

// alone writes a value alone.
func (p Printer) alone(value []byte) error {
	end := "\n"
	if p.Format == Raw {
		end = ""
	}
	_, err := fmt.Fprintf(p.Out, "%s%s", value, end)
	return err
}

// Watch writes one response of a watch: in JSON an object on one line for each
// event.
func (p Printer) Watch(w *aweighv1.WatchResponse) error {
	for _, e := range w.Events {
		if err := p.event(e); err != nil {
			return err
		}
	}
	return nil
}

func (p Printer) event(e *aweighv1.Event) error {
	kind := "put"
	if e.Delete {
		kind = "delete"
	}
	switch p.Format {
	case JSON:
		return p.line(struct {
			Type string    `json:"type"` // put or delete
			Kv   *keyValue `json:"kv"`
			Prev *keyValue `json:"prev_kv,omitempty"`
		}{kind, kvJSON(e.Kv), kvJSON(e.PrevKv)})
	case Value, Raw:
		if e.Delete {
			return nil
		}
		return p.value(e.Kv)
	}
	line := fmt.Sprintf("%-6s  %s", kind, Key(e.Kv.Key))
	if !e.Delete {
		line += " = " + text(e.Kv.Value)
	}
	if e.PrevKv != nil {
		line += "  (before: " + text(e.PrevKv.Value) + ")"
	}
	_, err := fmt.Fprintf(p.Out, "%s  (revision %d)\n", line, e.Kv.ModRevision)
	return err
}

type opJSON struct {
	Range  *rangeJSON `json:"range,omitempty"`
	Put    any        `json:"put,omitempty"`
	Delete any        `json:"delete,omitempty"`
	Txn    *txnJSON   `json:"txn,omitempty"`
}

type txnJSON struct {
	Header    *header  `json:"header,omitempty"` // missing within another answer
	Succeeded bool     `json:"succeeded"`
	Responses []opJSON `json:"responses"`
	Repeated  bool     `json:"repeated,omitempty"` // answered from the record, without responses
}

func txnOf(r *aweighv1.TxnResponse) *txnJSON {
	out := &txnJSON{headerOf(r.Header), r.Succeeded, []opJSON{}, r.Repeated}
	for _, op := range r.Responses {
		switch op := op.Response.(type) {
		case *aweighv1.OpResponse_Range:
			x := rangeOf(op.Range)
			out.Responses = append(out.Responses, opJSON{Range: &x})
		case *aweighv1.OpResponse_Put:
			out.Responses = append(out.Responses, opJSON{Put: struct {
				UID  string    `json:"uid"`
				Prev *keyValue `json:"prev_kv,omitempty"`
			}{op.Put.Uid, kvJSON(op.Put.PrevKv)}})
		case *aweighv1.OpResponse_Delete:
			out.Responses = append(out.Responses, opJSON{Delete: struct {
				Deleted int64       `json:"deleted"`
				Prev    []*keyValue `json:"prev_kvs,omitempty"`
			}{op.Delete.Deleted, kvsJSON(op.Delete.PrevKvs)}})
		case *aweighv1.OpResponse_Txn:
			out.Responses = append(out.Responses, opJSON{Txn: txnOf(op.Txn)})
		}
	}
	return out
}

// Txn writes the answer to a transaction. One whose conditions did not hold, and that has nothing to do then, has an
// answer in JSON only: that is an error.
func (p Printer) Txn(r *aweighv1.TxnResponse, otherwise bool) error {
	if p.Format == JSON {
		return p.JSON(txnOf(r))
	}
	if !r.Succeeded && !otherwise {
		return nil
	}
	if p.Format == Table {
		branch := "then"
		if !r.Succeeded {
			branch = "else"
		}
		if r.Repeated {
			fmt.Fprintf(p.Out, "branch %s, ", branch)
			return p.done(r.Header)
		}
		fmt.Fprintf(p.Out, "OK  branch %s, %s\n", branch, standsAt(r.Header))
	}
	return p.responses(r)
}

func (p Printer) responses(r *aweighv1.TxnResponse) error {
	for _, op := range r.Responses {
		var err error
		switch op := op.Response.(type) {
		case *aweighv1.OpResponse_Range:
			if p.Format.OfValues() {
				err = p.values(op.Range.Kvs)
				break
			}
			for _, kv := range op.Range.Kvs {
				fmt.Fprintf(p.Out, "get  %s = %s\n", Key(kv.Key), text(kv.Value))
			}
		case *aweighv1.OpResponse_Put:
			if p.Format == Table {
				fmt.Fprintln(p.Out, "put  done")
			}
		case *aweighv1.OpResponse_Delete:
			if p.Format == Table {
				fmt.Fprintf(p.Out, "del  %d deleted\n", op.Delete.Deleted)
			}
		case *aweighv1.OpResponse_Txn:
			err = p.responses(op.Txn)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Compacted writes the answer to a compaction.
func (p Printer) Compacted(r *aweighv1.CompactResponse, revision int64) error {
	if p.Format == JSON {
		return p.JSON(struct {
			Header    header `json:"header"`
			Compacted int64  `json:"compacted"`
		}{headerJSON(r.Header), revision})
	}
	_, err := fmt.Fprintf(p.Out, "OK  revisions below %d are dropped, final in block %d\n", revision, r.Header.GetHeight())
	return err
}
