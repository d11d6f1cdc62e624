package show

import (
	"encoding/hex"
	"github.com/aweigh/aweigh"
	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/internal/policytext"
	"github.com/aweigh/aweigh/internal/wysiwys"
	"github.com/aweigh/aweigh/scope"
)

type electorJSON struct {
	Name     string `json:"name"`
	ID       string `json:"id"`
	Key      string `json:"key"`
	Weight   uint64 `json:"weight"`
	Anchor   bool   `json:"anchor"`
	Required bool   `json:"required"`
}

type operationJSON struct {
	Kind        string  `json:"kind"` // put, delete, read, txn
	Key         *string `json:"key,omitempty"`
	KeyBase64   []byte  `json:"key_base64,omitempty"`
	End         *string `json:"end,omitempty"`
	EndBase64   []byte  `json:"end_base64,omitempty"`
	Value       *string `json:"value,omitempty"`
	ValueBase64 []byte  `json:"value_base64,omitempty"`
	KeepsValue  bool    `json:"keeps_value,omitempty"`
	KeepsLease  bool    `json:"keeps_lease,omitempty"`
	leaseJSON
	Conditions []string         `json:"conditions,omitempty"` // of a txn
	Then       []*operationJSON `json:"then,omitempty"`
	Else       []*operationJSON `json:"else,omitempty"`
}

// reachJSON is a range of keys, from the first one up to the end, or the end of all keys if that is one byte 0.
type reachJSON struct {
	Key       *string `json:"key,omitempty"`
	KeyBase64 []byte  `json:"key_base64,omitempty"`
	End       *string `json:"end,omitempty"`
	EndBase64 []byte  `json:"end_base64,omitempty"`
}

type effectJSON struct {
	Class  string      `json:"class"` // insert, update, delete
	Keys   int64       `json:"keys"`  // found when the motion opened
	Held   []*keyValue `json:"held"`
	Proven bool        `json:"proven"`           // that the key held just this then
	Copies *placed     `json:"copies,omitempty"` // the version whose value a change of names puts
	*operationJSON
}

type inspectionJSON struct {
	Network       string           `json:"network"`
	NetworkName   string           `json:"network_name"`
	Pinned        bool             `json:"pinned"`
	Scope         string           `json:"scope"`
	Motion        string           `json:"motion"`
	Author        string           `json:"author"`
	AuthorID      string           `json:"author_id"`
	AuthorName    string           `json:"author_name,omitempty"`
	Principal     string           `json:"principal,omitempty"` // the key whose rights the author uses, by a token
	PrincipalName string           `json:"principal_name,omitempty"`
	Justification string           `json:"justification,omitempty"`
	Caller        string           `json:"caller,omitempty"` // for whom the author made it, as the author states
	OpenedNs      int64            `json:"opened_ns"`
	DeadlineNs    int64            `json:"deadline_ns"`
	Passed        bool             `json:"deadline_passed"` // by the clock of this machine
	Asked         string           `json:"asked"`
	Takes         string           `json:"takes"`
	Needed        uint64           `json:"needed_weight"`
	Anchors       uint32           `json:"needed_anchors"`
	Total         uint64           `json:"total_weight"`
	Voters        []electorJSON    `json:"voters"`
	Subject       string           `json:"subject"` // its subject, in words
	Conditions    []string         `json:"conditions"`
	Held          bool             `json:"conditions_held"`
	Reach         []reachJSON      `json:"reach,omitempty"` // ranges of keys that the author may change; none: all
	Operations    []*operationJSON `json:"operations"`
	Otherwise     []*operationJSON `json:"otherwise,omitempty"`      // of a draft: what it does if its conditions do not hold when it opens
	Effects       []effectJSON     `json:"effects"`                  // of operations without transactions within
	Origin        *attestationJSON `json:"origin,omitempty"`         // the block that opened it; none of a draft
	Head          attestationJSON  `json:"head"`                     // a later one, whose lineage includes that, or the same if it is bare
	Warnings      []string         `json:"warnings,omitempty"`       // rules that would not hold any more
	Bare          bool             `json:"bare"`                     // opening and findings are only stated by the exporting node
	Draft         bool             `json:"draft,omitempty"`          // no block has opened it, as of head
	ValidUntilNs  int64            `json:"valid_until_ns,omitempty"` // of a draft: a block must open it by then
	Impact        *impactJSON      `json:"impact,omitempty"`         // what it would change, as the block that opened it found
	Opening       wysiwys.Form     `json:"opening"`                  // all of the motion as it opened, with its mutation
}

func inspectionOf(r *scope.MotionReport, pinned bool, now aweigh.Instant) (*inspectionJSON, error) {
	mo := &r.Motion
	e, err := mo.Electorate()
	if err != nil {
		return nil, err
	}
	shown, err := wysiwys.Motion(mo, nil)
	if err != nil {
		return nil, err
	}
	out := &inspectionJSON{
		Opening: shown.Full, Impact: impactJSONOf(mo.Impact),
		Network: r.Network.String(), NetworkName: r.Name, Pinned: pinned, Scope: r.Mutation.Scope.String(), Motion: mo.ID().String(),
		Author: r.Author.String(), AuthorID: r.Author.ID().String(), AuthorName: namedIn(r, r.Author.ID()), Justification: r.Mutation.Justification, Caller: r.Mutation.Caller,
		OpenedNs: int64(mo.Opened), DeadlineNs: int64(mo.Deadline), Passed: mo.Deadline <= now,
		Asked: mo.Approval.String(), Takes: takes(r), Needed: mo.Rule.Threshold(e.Total()), Anchors: mo.Rule.MinAnchors, Total: e.Total(),
		Subject: mo.Subject(), Conditions: []string{}, Held: mo.Success, Effects: []effectJSON{},
		Head: attestation(r.Head), Bare: r.Bare, Draft: r.Draft,
	}
	if acts := r.Mutation.Granted(); acts != nil {
		out.Principal, out.PrincipalName = hex.EncodeToString(acts), namedIn(r, aweigh.Hash(acts))
	}
	if r.Draft {
		out.OpenedNs, out.DeadlineNs, out.Passed = 0, 0, r.Mutation.ValidUntil <= now
		out.ValidUntilNs = int64(r.Mutation.ValidUntil)
	} else {
		origin := attestation(r.Origin)
		out.Origin = &origin
	}
	if r.Decision != nil {
		out.Warnings = policytext.Lost(&r.Under.Policy, nil, r.Decision)
	}
	for _, v := range mo.Voters {
		out.Voters = append(out.Voters, electorJSON{v.Name, v.Key.ID().String(), v.Key.String(), v.Weight, v.Anchor, v.Required})
	}
	for i := range r.Txn.Compare {
		out.Conditions = append(out.Conditions, condition(&r.Txn.Compare[i]))
	}
	for i := range r.Txn.Reach {
		var x reachJSON
		x.Key, x.KeyBase64 = bytesField(r.Txn.Reach[i].Key)
		x.End, x.EndBase64 = bytesField(r.Txn.Reach[i].End)
		out.Reach = append(out.Reach, x)
	}
	ops := r.Txn.Success
	if r.Draft {
		out.Held, out.Otherwise = false, operationsOf(r.Txn.Failure)
	} else if !mo.Success {
		ops = r.Txn.Failure
	}
	out.Operations = operationsOf(ops)
	for i := range r.Effects {
		x := &r.Effects[i]
		effect := effectJSON{Class: x.Class().String(), Keys: x.Keys, Held: []*keyValue{}, Proven: x.Proven, operationJSON: operationOf(x.Op)}
		if x.Op.Lease != 0 {
			effect.leaseJSON = leaseJSONOf(x.Op.Lease, x.Found.TTL, x.Found.Keeper[:], "")
		}
		if c := x.Copies; c != nil {
			effect.Copies, effect.Value, effect.ValueBase64 = placedAt(c.Key, c.Revision), nil, nil
		}
		for _, v := range x.Held {
			effect.Held = append(effect.Held, kvJSON(&aweighv1.KeyValue{
				Key: v.Key, Value: v.Value, CreateRevision: v.CreateRevision, ModRevision: v.ModRevision, Version: v.Version, Lease: v.Lease, Uid: v.UID.String(),
			}))
		}
		out.Effects = append(out.Effects, effect)
	}
	return out, nil
}

func operationsOf(ops []scope.Op) []*operationJSON {
	out := []*operationJSON{}
	for i := range ops {
		out = append(out, operationOf(&ops[i]))
	}
	return out
}

func operationOf(op *scope.Op) *operationJSON {
	kinds := map[scope.OpKind]string{scope.OpRange: "read", scope.OpPut: "put", scope.OpDelete: "delete", scope.OpTxn: "txn", scope.OpMerge: "merge"}
	out := &operationJSON{Kind: kinds[op.Kind], KeepsValue: op.IgnoreValue, KeepsLease: op.IgnoreLease, leaseJSON: leaseJSONOf(op.Lease, 0, nil, "")}
	if op.Txn != nil {
		for i := range op.Txn.Compare {
			out.Conditions = append(out.Conditions, condition(&op.Txn.Compare[i]))
		}
		out.Then, out.Else = operationsOf(op.Txn.Success), operationsOf(op.Txn.Failure)
		return out
	}
	out.Key, out.KeyBase64 = bytesField(op.Key)
	if len(op.End) > 0 {
		out.End, out.EndBase64 = bytesField(op.End)
	}
	if op.Kind == scope.OpPut && !op.IgnoreValue {
		out.Value, out.ValueBase64 = bytesField(op.Value)
	}
	return out
}
