// Package form holds the JSON forms of what proofs show. Programs that verify proofs alone use it as well, so it knows
// neither the API nor a node. Fields may be added, none change their meaning.
package form

import (
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/scope"
)

// Bytes is a byte string in JSON: as text if it is UTF-8, otherwise in base64 under a second name.
func Bytes(b []byte) (text *string, base64 []byte) {
	if utf8.Valid(b) {
		s := string(b)
		return &s, nil
	}
	return nil, b
}

// KeyValue is a key with its value.
type KeyValue struct {
	Key            *string `json:"key,omitempty"`
	KeyBase64      []byte  `json:"key_base64,omitempty"` // if the key is not UTF-8
	Value          *string `json:"value,omitempty"`
	ValueBase64    []byte  `json:"value_base64,omitempty"` // if the value is not UTF-8
	CreateRevision int64   `json:"create_revision,omitempty"`
	ModRevision    int64   `json:"mod_revision,omitempty"`
	Version        int64   `json:"version,omitempty"`
	Lease          string  `json:"lease,omitempty"` // in hexadecimal digits, as in etcd
	UID            string  `json:"uid,omitempty"`
}

// Lease is the ID of a lease; empty for 0.
func Lease(id int64) string {
	if id == 0 {
		return ""
	}
	return strconv.FormatUint(uint64(id), 16)
}

// Signer is an anchor that signed.
type Signer struct {
	Anchor string `json:"anchor"`
	Name   string `json:"name"`
	Weight uint64 `json:"weight"`
}

// Attestation is a final block and the anchors that made it final.
type Attestation struct {
	Epoch   uint64   `json:"epoch"`
	Block   string   `json:"block"`
	Height  uint64   `json:"height"`
	TimeNs  int64    `json:"time_ns"`
	Weight  uint64   `json:"weight"`
	Total   uint64   `json:"total_weight"`
	Signers []Signer `json:"signers"`
}

// AttestationOf is the form of an attestation.
func AttestationOf(a scope.Attestation) Attestation {
	out := Attestation{
		Epoch: uint64(a.Epoch), Block: a.Block.String(), Height: uint64(a.Height), TimeNs: int64(a.Time),
		Weight: a.Weight, Total: a.Total,
	}
	for _, s := range a.Signers {
		out.Signers = append(out.Signers, Signer{s.Anchor.String(), s.Name, s.Weight})
	}
	return out
}

// Range is what a proof shows that the keys of a range hold.
type Range struct {
	Network string      `json:"network"`
	Pinned  bool        `json:"pinned"` // the network was compared with one named from elsewhere
	Key     string      `json:"key"`
	End     string      `json:"range_end,omitempty"`
	Kvs     []*KeyValue `json:"kvs"`
	Scopes  []RangePart `json:"scopes"`
	AgeNs   int64       `json:"age_ns"` // since the oldest of the blocks below, by the clock here
}

// RangePart is one scope of a Range.
type RangePart struct {
	Scope  string      `json:"scope"`
	Prefix string      `json:"prefix"`
	Height uint64      `json:"height"` // of the newest block that is included
	Head   Attestation `json:"head"`   // of the block that claims what the keys hold
}

// RangeOf is the form of what a proof shows that was verified.
func RangeOf(p *scope.RangeProof, r scope.RangeReport, pinned bool, now time.Time) Range {
	out := Range{
		Network: p.Parts[0].Ancestry.Genesis.Network().String(), Pinned: pinned, Key: string(p.Key), End: string(p.End),
		Kvs: []*KeyValue{}, AgeNs: int64(r.Age(aweigh.InstantOf(now))),
	}
	for i := range r.Kvs {
		v := &r.Kvs[i]
		kv := &KeyValue{
			CreateRevision: v.CreateRevision, ModRevision: v.ModRevision, Version: v.Version,
			Lease: Lease(v.Lease), UID: v.UID.String(),
		}
		kv.Key, kv.KeyBase64 = Bytes(v.Key)
		if v.Version > 0 {
			kv.Value, kv.ValueBase64 = Bytes(v.Value)
		}
		out.Kvs = append(out.Kvs, kv)
	}
	for i := range r.Parts {
		v := &r.Parts[i]
		out.Scopes = append(out.Scopes, RangePart{
			Scope: v.Scope.String(), Prefix: string(v.Prefix), Height: uint64(v.Height), Head: AttestationOf(v.Head),
		})
	}
	return out
}
