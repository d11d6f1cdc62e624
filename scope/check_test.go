package scope

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/aweigh/aweigh"
)

func inner(success, failure []Op) Op {
	return Op{Kind: OpTxn, Txn: &Txn{Success: success, Failure: failure}}
}

func TestTxnCheckIsEtcds(t *testing.T) {
	lim := DefaultLimits()
	nested := func(n int) Txn {
		x := Txn{Success: []Op{put("a", "1")}}
		for range n {
			x = Txn{Success: []Op{{Kind: OpTxn, Txn: &Txn{Success: x.Success}}}}
		}
		return x
	}
	many := func(n int) (ops []Op) {
		for range n {
			ops = append(ops, get("a", ""))
		}
		return ops
	}
	other := errors.New("some error")
	for name, c := range map[string]struct { // order-free: each is checked alone
		txn  Txn
		want error
	}{
		"nothing":                         {Txn{}, nil},
		"a put":                           {Txn{Success: []Op{put("a", "1")}}, nil},
		"no key":                          {Txn{Success: []Op{put("", "1")}}, ErrEmptyKey},
		"no key to compare":               {Txn{Compare: []Compare{{Target: OnMod, Relation: Equal}}}, ErrEmptyKey},
		"twice":                           {Txn{Success: []Op{put("a", "1"), put("a", "2")}}, ErrDuplicateKey},
		"once in each branch":             {Txn{Success: []Op{put("a", "1")}, Failure: []Op{put("a", "2")}}, nil},
		"put and deleted":                 {Txn{Success: []Op{put("a", "1"), del("a", "")}}, ErrDuplicateKey},
		"deleted and put":                 {Txn{Failure: []Op{del("a", "c"), put("b", "1")}}, ErrDuplicateKey},
		"put at the end of a deletion":    {Txn{Success: []Op{del("a", "b"), put("b", "1")}}, nil},
		"deleted twice":                   {Txn{Success: []Op{del("a", "c"), del("b", "")}}, nil},
		"all deleted, one put, as etcd":   {Txn{Success: []Op{del("a", "\x00"), put("b", "1")}}, nil},
		"all deleted, one kept":           {Txn{Success: []Op{del("a", "\x00"), {Kind: OpPut, Key: []byte("b"), IgnoreValue: true}}}, ErrDuplicateKey},
		"outer and inner put":             {Txn{Success: []Op{put("a", "1"), inner([]Op{put("a", "2")}, nil)}}, ErrDuplicateKey},
		"inner branches put":              {Txn{Success: []Op{inner([]Op{put("a", "2")}, []Op{put("a", "3")})}}, nil},
		"two inner put":                   {Txn{Success: []Op{inner([]Op{put("a", "2")}, nil), inner(nil, []Op{put("a", "3")})}}, ErrDuplicateKey},
		"outer deletes, inner puts":       {Txn{Success: []Op{inner(nil, []Op{put("a", "2")}), del("a", "")}}, ErrDuplicateKey},
		"inner deletes, outer puts":       {Txn{Success: []Op{put("a", "2"), inner(nil, []Op{del("a", "b")})}}, ErrDuplicateKey},
		"inner deletes, then inner puts":  {Txn{Success: []Op{inner([]Op{del("a", "")}, nil), inner([]Op{put("a", "2")}, nil)}}, ErrDuplicateKey},
		"inner puts, then inner deletes":  {Txn{Success: []Op{inner([]Op{put("a", "2")}, nil), inner([]Op{del("a", "")}, nil)}}, nil},
		"as many as allowed":              {Txn{Success: many(lim.TxnOps)}, nil},
		"one too many":                    {Txn{Failure: many(lim.TxnOps + 1)}, ErrTooManyOps},
		"inner beyond what outer left":    {Txn{Success: append(many(lim.TxnOps-2), inner(many(2), nil))}, ErrTooManyOps},
		"inner within what outer left":    {Txn{Success: append(many(lim.TxnOps-2), inner(many(1), nil))}, nil},
		"nested":                          {nested(DefaultLimits().TxnDepth), nil},
		"nested too deep":                 {nested(DefaultLimits().TxnDepth + 1), other},
		"value kept and given":            {Txn{Success: []Op{{Kind: OpPut, Key: []byte("a"), Value: []byte("1"), IgnoreValue: true}}}, ErrValueProvided},
		"lease kept and given":            {Txn{Success: []Op{{Kind: OpPut, Key: []byte("a"), Lease: 1, IgnoreLease: true}}}, ErrLeaseProvided},
		"unknown order":                   {Txn{Success: []Op{{Kind: OpRange, Key: []byte("a"), Range: &Range{Order: 3}}}}, ErrSortOption},
		"unknown sort":                    {Txn{Success: []Op{{Kind: OpRange, Key: []byte("a"), Range: &Range{Sort: 5}}}}, ErrSortOption},
		"unknown operation":               {Txn{Success: []Op{{Kind: 9, Key: []byte("a")}}}, other},
		"no operation":                    {Txn{Success: []Op{{}}}, other},
		"a put of a range":                {Txn{Success: []Op{{Kind: OpPut, Key: []byte("a"), End: []byte("b")}}}, other},
		"a deletion with a value":         {Txn{Success: []Op{{Kind: OpDelete, Key: []byte("a"), Value: []byte("b")}}}, other},
		"a range that asks for what was":  {Txn{Success: []Op{{Kind: OpRange, Key: []byte("a"), Prev: true}}}, other},
		"an inner transaction of nothing": {Txn{Success: []Op{{Kind: OpTxn}}}, other},
		"an inner transaction with a key": {Txn{Success: []Op{{Kind: OpTxn, Key: []byte("a"), Txn: &Txn{}}}}, other},
		"unknown target":                  {Txn{Compare: []Compare{{Target: 6, Relation: Equal, Key: []byte("a")}}}, other},
		"unknown relation":                {Txn{Compare: []Compare{{Target: OnMod, Key: []byte("a")}}}, other},
		"a number for a value":            {Txn{Compare: []Compare{{Target: OnValue, Relation: Equal, Key: []byte("a"), Number: 1}}}, other},
		"longest key":                     {Txn{Success: []Op{put(strings.Repeat("k", lim.KeyBytes), "")}}, nil},
		"key too long":                    {Txn{Success: []Op{put(strings.Repeat("k", lim.KeyBytes+1), "")}}, other},
		"bound after the longest key":     {Txn{Success: []Op{get("a", strings.Repeat("k", lim.KeyBytes)+"\x00")}}, nil},
		"bound too long":                  {Txn{Success: []Op{get("a", strings.Repeat("k", lim.KeyBytes+2))}}, other},
		"longest value":                   {Txn{Success: []Op{put("a", strings.Repeat("v", lim.ValueBytes))}}, nil},
		"value too long":                  {Txn{Success: []Op{put("a", strings.Repeat("v", lim.ValueBytes+1))}}, other},
	} {
		err := c.txn.Check(lim)
		if c.want == other && err == nil || c.want != other && !errors.Is(err, c.want) || c.want == nil && err != nil {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

func TestLimitsAreChecked(t *testing.T) {
	if err := DefaultLimits().check(); err != nil {
		t.Fatal(err)
	}
	for name, bend := range map[string]func(l *Limits){ // order-free: each is checked alone
		"no keys":            func(l *Limits) { l.KeyBytes = 0 },
		"negative":           func(l *Limits) { l.BlockMutations = -1 },
		"value > mutation":   func(l *Limits) { l.ValueBytes = l.MutationBytes + 1 },
		"mutation > bundle":  func(l *Limits) { l.MutationBytes = l.BundleBytes + 1 },
		"bundle > block":     func(l *Limits) { l.BundleBytes = l.BlockBytes + 1 },
		"block > frame":      func(l *Limits) { l.BlockBytes = 8 << 20 },
		"no drift":           func(l *Limits) { l.Drift = 0 },
		"receipts for years": func(l *Limits) { l.ValidFor = 9000 * time.Hour },
		"no anchors":         func(l *Limits) { l.Anchors = 0 },
		"anchors > offer":    func(l *Limits) { l.Anchors = 4097 },
	} {
		l := DefaultLimits()
		bend(&l)
		if err := l.check(); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestReasonsAreErrors checks that a recorded reason leads back to its error.
func TestReasonsAreErrors(t *testing.T) {
	for _, err := range failures {
		if got := Failure(reason(err)); !errors.Is(got, err) {
			t.Errorf("%q is %v", reason(err), got)
		}
	}
	if Failure("") != nil || Failure("else").Error() != "scope: else" {
		t.Error("other reasons")
	}
}

func TestGenesisIsChecked(t *testing.T) {
	if g, _ := testGenesis(t, 4); true {
		if stoppable, err := g.Check(); err != nil || stoppable {
			t.Fatalf("stoppable %v, %v", stoppable, err)
		}
		if again, err := DecodeGenesis(g.Encode()); err != nil || again.Hash() != g.Hash() {
			t.Fatalf("round trip: %v", err)
		}
	}
	if g, _ := testGenesis(t, 1); true {
		if _, err := g.Check(); err != nil {
			t.Fatalf("one anchor alone: %v", err)
		}
	}
	for name, bend := range map[string]func(g *Genesis){ // order-free: each is checked alone
		"no anchors":  func(g *Genesis) { g.Anchors = nil },
		"format":      func(g *Genesis) { g.Format++ },
		"no time":     func(g *Genesis) { g.Time = 0 },
		"disorder":    func(g *Genesis) { g.Anchors[0], g.Anchors[1] = g.Anchors[1], g.Anchors[0] },
		"twice":       func(g *Genesis) { g.Anchors[1] = g.Anchors[0] },
		"no epochs":   func(g *Genesis) { g.Policy.EpochBlocks = 0 },
		"score":       func(g *Genesis) { g.Anchors[0].Score = 1_000_001 },
		"unsafe":      func(g *Genesis) { g.Policy.Rules.Notarize.Num = 1 },
		"limits":      func(g *Genesis) { g.Policy.Limits.TxnOps = 0 },
		"crowd":       func(g *Genesis) { g.Policy.Limits.Anchors = 3 },
		"trust":       func(g *Genesis) { g.Policy.Trust.Floor = 0 },
		"no such key": func(g *Genesis) { g.Anchors[0].Key.Bytes = nil },
	} {
		g, _ := testGenesis(t, 4)
		bend(&g)
		if _, err := g.Check(); err == nil {
			t.Errorf("%s: no error", name)
		}
		if _, err := Init(g); err == nil {
			t.Errorf("%s: init", name)
		}
	}
}

func TestOutcomesOfWhatShouldNotBeThere(t *testing.T) {
	w := newWorld(t)
	late, early, fine := w.put("a", "1"), w.put("b", "1"), w.put("c", "1")
	late.ValidUntil = w.now
	early.ValidUntil = w.now.Add(time.Hour)
	for i, want := range []Code{Expired, Refused, Applied} {
		if out := w.step([]Mutation{late, early, fine}[i]).Outcomes[0]; out.Code != want {
			t.Errorf("mutation %d: %s, want %s", i, out.Code, want)
		}
	}
	w.now = early.ValidUntil.Add(-time.Minute)
	if out := w.step(early).Outcomes[0]; out.Code != Applied {
		t.Errorf("what was too early, later: %s", out.Code)
	}
	foreign := w.put("a", "1")
	foreign.Scope = aweigh.Sum([]byte("elsewhere"))
	if err := w.blockAt(w.sign(foreign)).Check(w.g.Policy.Limits); !errors.Is(err, ErrInvalid) {
		t.Errorf("a block with a foreign bundle: %v", err)
	}
	if out := w.execute(w.blockAt(w.sign(foreign))).Outcomes[0]; out.Code != Refused {
		t.Errorf("a foreign mutation: %s", out.Code)
	}
}

func TestHeaderClaimsAreChecked(t *testing.T) {
	w := newWorld(t)
	w.one(w.put("a", "1"))
	w.now = w.now.Add(time.Second)
	good := w.block(nil).Header
	if err := w.state.CheckHeader(good); err != nil {
		t.Fatal(err)
	}
	for name, bend := range map[string]func(h *Header){ // order-free: each is checked alone
		"format":       func(h *Header) { h.Format++ },
		"network":      func(h *Header) { h.Network[0]++ },
		"scope":        func(h *Header) { h.Scope[0]++ },
		"view":         func(h *Header) { h.View-- },
		"height":       func(h *Header) { h.Height++ },
		"parent":       func(h *Header) { h.Parent[0]++ },
		"time":         func(h *Header) { h.Time = w.state.Head().Time },
		"lineage size": func(h *Header) { h.LineageSize++ },
		"lineage root": func(h *Header) { h.LineageRoot[0]++ },
		"state":        func(h *Header) { h.State[0]++ },
		"keys":         func(h *Header) { h.Current[0]++ },
	} {
		h := good
		bend(&h)
		if err := w.state.CheckHeader(h); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
