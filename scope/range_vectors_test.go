package scope

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

var (
	updateVectors = flag.Bool("update-vectors", false, "write testdata/range_proofs.jsonl anew")
	vectorsDir    = flag.String("vectors", "", "write vectors.jsonl to this folder, with many proofs")
	vectorsCount  = flag.Int("vectors-count", 10_000, "how many proofs")
)

const (
	vectorsFile = "testdata/range_proofs.jsonl"
	fewVectors  = 100
)

// rangeVector is an encoded RangeProof, honest or bent, and the verdict about it. Other implementations are checked
// with the same vectors. Most are the bytes of an earlier one, of which With replaces those from From up to To.
type rangeVector struct {
	Name  string   `json:"name"`
	Of    int      `json:"of,omitempty"` // the number of the earlier one, counting from 1; 0: With is all
	From  int      `json:"from,omitempty"`
	To    int      `json:"to,omitempty"`
	With  []byte   `json:"with"` // in base64
	Holds bool     `json:"holds"`
	Kvs   []string `json:"kvs,omitempty"` // key=value, of one that holds
	raw   []byte
}

// vectorsHead is the first line of a file of vectors. Now is a time soon after the newest block.
type vectorsHead struct {
	Network string    `json:"network"`
	Now     time.Time `json:"now"`
}

// patched states the bytes as a change of those of an earlier vector.
func (v *rangeVector) patched(of int, base []byte) {
	from, tail := 0, 0
	for from < min(len(base), len(v.raw)) && base[from] == v.raw[from] {
		from++
	}
	for tail < min(len(base), len(v.raw))-from && base[len(base)-1-tail] == v.raw[len(v.raw)-1-tail] {
		tail++
	}
	v.Of, v.From, v.To, v.With = of, from, len(base)-tail, v.raw[from:len(v.raw)-tail]
}

// judge sets the verdict. It returns an error if that is wrong: an honest proof holds, and one that holds shows what
// the keys held.
func (v *rangeVector) judge(w *vectorWorld, at *tower, honest bool) error {
	p, err := DecodeRangeProof(v.raw)
	var r RangeReport
	if err == nil {
		r, err = p.Verify(w.network)
	}
	switch {
	case err == nil:
		v.Holds, v.Kvs = true, listed(r.Kvs)
		if want := at.within(p.Key, p.End); !slices.Equal(v.Kvs, want) {
			return fmt.Errorf("%s: it shows %q, and the keys hold %q", v.Name, v.Kvs, want)
		}
	case honest:
		return fmt.Errorf("%s: %w", v.Name, err)
	case !errors.Is(err, ErrProof):
		return fmt.Errorf("%s: an error of another kind: %w", v.Name, err)
	}
	return nil
}

// rangeVectors makes vectors, always the same ones.
func rangeVectors(t testing.TB, n int) (*vectorWorld, []*rangeVector) {
	t.Helper()
	w := newVectorWorld(t)
	var all []*rangeVector
	add := func(v *rangeVector, at *tower, honest bool) {
		t.Helper()
		if err := v.judge(w, at, honest); err != nil {
			t.Fatal(err)
		}
		all = append(all, v)
	}
	for _, h := range w.honest {
		add(&rangeVector{Name: h.name, With: h.raw, raw: h.raw}, h.at, true)
	}
	for len(all) < n {
		if len(all) >= fewVectors && w.rng.IntN(5) == 0 {
			h := w.anyHonest(t)
			add(&rangeVector{Name: h.name, With: h.raw, raw: h.raw}, h.at, true)
			continue
		}
		b, of, raw := bends[len(all)%len(bends)], w.pick(), []byte(nil)
		for range w.honest { // not every proof can be bent in every way
			if raw = b.bend(w, w.honest[of]); raw != nil && !bytes.Equal(raw, w.honest[of].raw) {
				break
			}
			of = (of + 1) % len(w.honest)
		}
		h := w.honest[of]
		v := &rangeVector{Name: fmt.Sprintf("%s, of %s", b.name, h.name), raw: raw}
		v.patched(of+1, h.raw)
		add(v, h.at, false)
	}
	return w, all
}

// TestRangeProofsMatchTheVectors pins the verdicts about proofs. With -vectors it writes many to a folder.
func TestRangeProofsMatchTheVectors(t *testing.T) {
	n := fewVectors
	if *vectorsDir != "" {
		n = *vectorsCount
	}
	w, all := rangeVectors(t, n)
	holds := 0
	for _, v := range all {
		if v.Holds {
			holds++
		}
	}
	if holds < n/8 || n-holds < n/2 {
		t.Errorf("%d of %d proofs hold", holds, n)
	}
	if *vectorsDir != "" {
		t.Logf("%d of %d proofs hold", holds, n)
		if err := os.WriteFile(filepath.Join(*vectorsDir, "vectors.jsonl"), w.encode(t, all), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	made := w.encode(t, all)
	if *updateVectors {
		if err := os.WriteFile(vectorsFile, made, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(vectorsFile)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(made, want) {
		t.Error("the proofs, or the verdicts about them, are not those of " + vectorsFile)
	}
}

// encode is the text of a file of vectors.
func (w *vectorWorld) encode(t testing.TB, all []*rangeVector) []byte {
	t.Helper()
	var b bytes.Buffer
	out := bufio.NewWriter(&b)
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false)
	err := e.Encode(vectorsHead{Network: w.network.String(), Now: w.now})
	for _, v := range all {
		err = errors.Join(err, e.Encode(v))
	}
	if err = errors.Join(err, out.Flush()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
