package sim

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/internal/must"
	"github.com/aweigh/aweigh/internal/testshort"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/sim/scenario"
)

// free are the changes that a proof may have, and the reason.
var free = map[string]string{
	"KeyProof.Assent.Ballots shorter": "those that are left may be enough; the proof shows who approved by them",
}

// TestForgedProofsAreRefused changes each place of each kind of proof, one at a time: none may be taken. The kinds are
// the types of package scope that are verified from the network's identity, and their places are all of their fields: a
// new one is forged as well.
func TestForgedProofsAreRefused(t *testing.T) {
	testshort.SkipUnlessLong(t)
	each := testshort.Cases(1, 3, 3) // changes of one place
	samples, done := proofs(t), make(map[string]int)
	for _, name := range proofKinds(t) {
		if len(samples[name]) == 0 {
			t.Errorf("no sample of %s", name)
		}
		for _, s := range samples[name] {
			if err := s.verify(s.proof); err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			for i := 0; ; i++ {
				bad := copied(s.proof)
				n := i
				place, change := leaf(reflect.ValueOf(bad).Elem(), name, &n)
				if change == nil {
					break
				}
				if done[place] == each {
					continue
				}
				done[place]++
				change()
				if s.verify(bad) == nil && free[place] == "" {
					t.Errorf("taken, though %s is forged", place)
				}
			}
		}
	}
	for place := range free { // order-free: each for itself
		if done[place] == 0 {
			t.Errorf("not forged: %s", place)
		}
	}
}

// copied is a proof anew, by way of its encoding.
func copied(proof any) (again any) {
	var err error
	switch p := proof.(type) {
	case *scope.RangeProof:
		again, err = scope.DecodeRangeProof(p.Encode())
	case *scope.RangePart:
		var part scope.RangePart
		part, err = scope.DecodeRangePart(p.Encode())
		again = &part
	default:
		again = reflect.New(reflect.TypeOf(proof).Elem()).Interface()
		err = canon.Decode(canon.Encode(proof), again)
	}
	must.OK(err, "decoding a proof")
	return again
}

// sample is a genuine proof.
type sample struct {
	proof    any
	w        *World
	key, end []byte // of a proof about a range of keys
}

// verify reports why a proof is refused.
func (s sample) verify(proof any) error {
	args := []reflect.Value{reflect.ValueOf(s.w.scopes[0].id)}
	switch p := proof.(type) {
	case *scope.RangeProof:
		if !bytes.Equal(p.Key, s.key) || !bytes.Equal(p.End, s.end) { // the reader knows what it asked for
			return scope.ErrProof
		}
	case *scope.RangePart:
		args = append(args, reflect.ValueOf(s.key), reflect.ValueOf(s.end))
	}
	out := reflect.ValueOf(proof).MethodByName("Verify").Call(args)
	err, _ := out[len(out)-1].Interface().(error)
	return err
}

// proofKinds are the types of package scope with a method Verify that takes a network's identity.
func proofKinds(t *testing.T) (names []string) {
	all, err := filepath.Glob(filepath.Join("..", "scope", "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range all {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Recv == nil || f.Name.Name != "Verify" || fmt.Sprint(f.Type.Params.List[0].Names[0]) != "network" {
				continue
			}
			names = append(names, f.Recv.List[0].Type.(*ast.StarExpr).X.(*ast.Ident).Name)
		}
	}
	slices.Sort(names)
	return names
}

// proofs are samples of each kind: of keys that were put, approved, handed over and deleted, of motions, and of faults.
func proofs(t *testing.T) map[string][]sample {
	all := make(map[string][]sample)
	for _, s := range []scenario.Scenario{
		{Network: scenario.Network{Anchors: 4, EpochBlocks: 8}, Approval: scenario.Approval{Motions: 3, Keys: 2}, Load: scenario.Load{Clients: 2, Writes: 20}, Stop: 6 * time.Second},
		{Network: scenario.Network{Anchors: 4, Transfers: true}, Govern: []scenario.Motion{{Kind: "delegate", Prefix: "/b/", At: time.Second, Anchors: []int{0, 1}}}, Load: scenario.Load{Writes: 40, Keys: 4, Under: []string{"/b/"}}, Stop: 6 * time.Second},
		{Network: scenario.Network{Anchors: 4}, Roles: []scenario.Role{{Attacks: []string{"equivocate"}, Anchors: []int{3}, Rate: scenario.Whole}}, Load: scenario.Load{Writes: 30}, Stop: 6 * time.Second},
	} {
		w := newWorld(t, s)
		w.startClients()
		w.government()
		w.startMotions()
		w.Run(w.Scenario.Stop, nil)
		w.heal()
		w.Run(10*time.Second, nil)
		if s.Network.Transfers {
			w.sends(t, "/sent", "/b/sent")
		}
		for _, c := range w.scopes {
			samplesOf(t, c, all)
		}
	}
	return all
}

// sends puts a key, and sends its object to another scope.
func (w *World) sends(t *testing.T, key, to string) {
	t.Helper()
	w.writes(t, key[1:], 1, w.Nodes[0])
	n := w.Nodes[0]
	key += "0"
	v, ok, err := n.state().NewestChange([]byte(key))
	if err != nil || !ok {
		t.Fatalf("%q is not there: %v", key, err)
	}
	m := w.mutation(scope.Txn{}, []byte("sends an object "))
	m.Class, m.Content = scope.Name, canon.Encode(scope.Naming{
		Kind: scope.Send, Object: v.UID, Key: []byte(key), To: []byte(to), Until: w.watch.time.from(w.now).Add(time.Hour),
	})
	var r machine.Reply
	n.Submit(m, func(is machine.Reply) { r = is })
	if !w.Run(time.Minute, func() bool { return r.Outcome != nil || r.Refused != nil }) || r.Outcome == nil || r.Outcome.Code != scope.Applied {
		t.Fatalf("sending: %+v", r)
	}
	w.writes(t, "after", 3, w.Nodes...)
}

func samplesOf(t *testing.T, w *World, all map[string][]sample) {
	add := func(proof any, err error) {
		if err != nil {
			t.Fatal(err)
		}
		if v := reflect.ValueOf(proof); !v.IsNil() {
			name := v.Type().Elem().Name()
			all[name] = append(all[name], sample{proof: proof, w: w})
		}
	}
	n := w.Nodes[0]
	p := n.prover()
	if a, err := p.Ancestry(0); provable(err) {
		add(&a, err)
	}
	if a, err := p.Claim(0); provable(err) {
		key, end := []byte(prefix), scope.PrefixEnd([]byte(prefix))
		part, err := scope.NewRangePart(a, p.State, key, end, 1<<20)
		if !errors.Is(err, scope.ErrElsewhere) { // else the prefix went to another scope
			must.OK(err, "making a proof")
			all["RangePart"] = append(all["RangePart"], sample{&part, w, key, end})
			all["RangeProof"] = append(all["RangeProof"], sample{&scope.RangeProof{Key: key, End: end, Parts: []scope.RangePart{part}}, w, key, end})
		}
	}
	if m := w.watch.modelled(); m != nil {
		v := m.At(m.Height())
		for i, key := range v.Keys() {
			if i%5 == 0 || strings.HasPrefix(string(key), prefix) {
				change, ok, err := p.State.NewestChange(key)
				must.OK(err, "reading a key")
				if !ok { // compacted
					continue
				}
				if proof, err := p.Key(key, change.Entry); err == nil {
					add(proof, nil)
				}
			}
		}
		for i, id := range v.Motions() {
			if i%3 == 0 {
				if proof, err := p.Motion(id, 0); provable(err) {
					add(proof, err)
				}
			}
		}
	}
	sent, err := p.State.Sent(1)
	must.OK(err, "reading what was sent")
	for i := range sent {
		proof, err := p.Sent(&sent[i])
		add(proof, err)
	}
	history := machine.History{Reader: n.Disk, Scope: w.id}
	for at := p.State.Height(); at > 0; at-- {
		b, err := history.Block(at)
		must.OK(err, "reading a final block")
		if len(b.Proofs) == 0 || len(all["FaultProof"]) > 0 {
			continue
		}
		epoch := int(b.Proofs[0].First.Domain.Epoch)
		f := &scope.FaultProof{Genesis: w.Genesis, Proof: b.Proofs[0]}
		if epoch > 0 {
			f.Handovers, err = history.Handovers(0, epoch)
		}
		add(f, err)
	}
}

var index = regexp.MustCompile(`\[\d+\]`)

// leaf is the nth change of a place in a value, nil if there are fewer: of a number, a text or a hash, and of how many
// parts there are.
func leaf(v reflect.Value, path string, n *int) (place string, change func()) {
	take := func(of string, do func()) bool {
		if *n--; *n == -1 {
			place, change = index.ReplaceAllString(path+of, ""), do
		}
		return change != nil
	}
	switch v.Kind() {
	case reflect.Bool:
		take("", func() { v.SetBool(!v.Bool()) })
	case reflect.Int, reflect.Int64:
		take("", func() { v.SetInt(v.Int() + 1) })
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		take("", func() { v.SetUint(v.Uint() ^ 1) })
	case reflect.String:
		take("", func() { v.SetString(v.String() + "x") })
	case reflect.Array:
		take("", func() { v.Index(0).SetUint(v.Index(0).Uint() ^ 1) })
	case reflect.Pointer:
		if v.IsNil() || take(" left out", func() { v.SetZero() }) {
			break
		}
		return leaf(v.Elem(), path, n)
	case reflect.Slice:
		if v.Len() == 0 {
			break
		}
		last := v.Index(v.Len() - 1)
		if take(" shorter", func() { v.SetLen(v.Len() - 1) }) || take(" longer", func() { v.Set(reflect.Append(v, last)) }) {
			break
		}
		if last.Kind() == reflect.Uint8 {
			take("", func() { last.SetUint(last.Uint() ^ 1) })
			break
		}
		for i := 0; i < v.Len() && change == nil; i++ {
			place, change = leaf(v.Index(i), fmt.Sprintf("%s[%d]", path, i), n)
		}
	case reflect.Struct:
		for i := 0; i < v.NumField() && change == nil; i++ {
			if f := v.Type().Field(i); f.IsExported() {
				place, change = leaf(v.Field(i), path+"."+f.Name, n)
			}
		}
	}
	return place, change
}
