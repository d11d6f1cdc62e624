package show

import (
	"fmt"
	"time"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/internal/form"
	"github.com/aweigh/aweigh/scope"
)

func provenKvs(r scope.RangeReport) (kvs []*aweighv1.KeyValue) {
	for i := range r.Kvs {
		v := &r.Kvs[i]
		kvs = append(kvs, &aweighv1.KeyValue{
			Key: v.Key, Value: v.Value, CreateRevision: v.CreateRevision, ModRevision: v.ModRevision, Version: v.Version,
			Lease: v.Lease, Uid: v.UID.String(),
		})
	}
	return kvs
}

// Proven writes what keys hold, as a proof shows that was verified.
func (p Printer) Proven(proof *scope.RangeProof, r scope.RangeReport, pinned bool, now time.Time) error {
	kvs := provenKvs(r)
	switch {
	case p.Format == JSON:
		return p.JSON(form.RangeOf(proof, r, pinned, now))
	case p.Format.OfValues():
		return p.values(kvs)
	case len(proof.End) == 0 && len(kvs) == 1:
		kv := kvs[0]
		if err := p.table(
			[]string{"key", Key(kv.Key)},
			[]string{"value", text(kv.Value)},
			[]string{"revision", fmt.Sprintf("%d (created in %d), version %d", kv.ModRevision, kv.CreateRevision, kv.Version)},
			[]string{"uid", kv.Uid},
		); err != nil {
			return err
		}
	case len(proof.End) == 0:
		fmt.Fprintf(p.Out, "%s holds nothing\n", Key(proof.Key))
	default:
		rows := [][]string{{"KEY", "VALUE", "VERSION", "REVISION"}}
		for _, kv := range kvs {
			rows = append(rows, []string{Key(kv.Key), text(kv.Value), fmt.Sprint(kv.Version), fmt.Sprint(kv.ModRevision)})
		}
		if err := p.table(rows...); err != nil {
			return err
		}
	}
	return p.provenBy(r, now)
}

// ProvenKeys writes the keys alone.
func (p Printer) ProvenKeys(proof *scope.RangeProof, r scope.RangeReport, now time.Time) error {
	if p.Format == JSON {
		out := form.RangeOf(proof, r, true, now)
		for _, kv := range out.Kvs {
			kv.Value, kv.ValueBase64 = nil, nil
		}
		return p.JSON(out)
	}
	for i := range r.Kvs {
		if _, err := fmt.Fprintln(p.Out, Key(r.Kvs[i].Key)); err != nil {
			return err
		}
	}
	return p.provenBy(r, now)
}

// provenBy writes a line for each scope: which block claims what its keys hold, and who made it final.
func (p Printer) provenBy(r scope.RangeReport, now time.Time) error {
	for i := range r.Parts {
		v := &r.Parts[i]
		of := ""
		if len(r.Parts) > 1 || len(v.Prefix) > 0 {
			of = fmt.Sprintf(" in the scope of %s", Key(v.Prefix))
			if len(v.Prefix) == 0 {
				of = " in the root scope"
			}
		}
		age := now.Sub(time.Unix(0, int64(v.Head.Time))).Round(time.Millisecond)
		if _, err := fmt.Fprintf(p.Out, "proven%s as of block %d, until %s, %s ago: block %d of epoch %d says so, which anchors of weight %d of %d made final\n",
			of, v.Height, instant(int64(v.Head.Time)), age, v.Head.Height, v.Head.Epoch, v.Head.Weight, v.Head.Total); err != nil {
			return err
		}
	}
	return nil
}
