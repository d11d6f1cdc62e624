package main

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aweigh/aweigh/internal/form"
)

// vectors are the proofs of package scope, each with its verdict.
type vectors struct {
	network string
	now     time.Time
	proofs  [][]byte
	holds   []bool
	kvs     [][]string
}

func readVectors(t *testing.T) (all vectors) {
	t.Helper()
	f, err := os.Open("../../scope/testdata/range_proofs.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewReader(f)
	for n := 0; ; n++ {
		line, err := lines.ReadBytes('\n')
		if err == io.EOF {
			return all
		}
		var x struct {
			Network      string
			Now          time.Time
			Of, From, To int
			With         []byte
			Holds        bool
			Kvs          []string
		}
		if err == nil {
			err = json.Unmarshal(line, &x)
		}
		switch {
		case err != nil:
			t.Fatal(err)
		case n == 0:
			all.network, all.now = x.Network, x.Now
			continue
		case x.Of > 0:
			base := all.proofs[x.Of-1]
			x.With = slices.Concat(base[:x.From], x.With, base[x.To:])
		}
		all.proofs, all.holds, all.kvs = append(all.proofs, x.With), append(all.holds, x.Holds), append(all.kvs, x.Kvs)
	}
}

// verify runs the program as its main does, a minute after the newest block of the vectors.
func (v *vectors) verify(in []byte, args ...string) (code int, out, errs string) {
	var o, e bytes.Buffer
	code = run(args, bytes.NewReader(in), &o, &e, func() time.Time { return v.now.Add(time.Minute) })
	return code, o.String(), e.String()
}

func contents(r form.Range) (all []string) {
	for _, kv := range r.Kvs {
		all = append(all, *kv.Key+"="+*kv.Value)
	}
	return all
}

// TestStreamsHaveTheVerdictsOfTheVectors: one line for each proof.
func TestStreamsHaveTheVerdictsOfTheVectors(t *testing.T) {
	v := readVectors(t)
	var in []byte
	for _, p := range v.proofs {
		in = append(binary.BigEndian.AppendUint32(in, uint32(len(p))), p...)
	}
	code, out, errs := v.verify(in, "--network", v.network, "--stream")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if code != exitOK || len(lines) != len(v.proofs) {
		t.Fatalf("code %d, %d lines: %s", code, len(lines), errs)
	}
	for i, line := range lines {
		var got verdict
		if err := json.Unmarshal([]byte(line), &got); err != nil {
			t.Fatal(err)
		}
		if (got.Code == exitOK) != v.holds[i] || got.Code != exitOK && got.Code != exitUnverified {
			t.Errorf("proof %d: code %d, %s", i+1, got.Code, got.Error)
		}
		if (got.Shows != nil) != v.holds[i] || got.Shows != nil && !slices.Equal(contents(*got.Shows), v.kvs[i]) {
			t.Errorf("proof %d: it shows %s, want %q", i+1, line, v.kvs[i])
		}
	}
	if code, _, _ := v.verify(in[:len(in)-1], "--network", v.network, "--stream"); code != exitError {
		t.Errorf("a stream that is cut off: code %d", code)
	}
}

// TestExitCodesAreThoseOfVerify: a reader that is given the exit code alone is deceived by nothing.
func TestExitCodesAreThoseOfVerify(t *testing.T) {
	v := readVectors(t)
	i := slices.Index(v.holds, false)
	honest, bent := v.proofs[0], v.proofs[i]
	other := strings.Repeat("0", 64)
	for _, c := range []struct {
		name string
		in   []byte
		args []string
		want int
	}{
		{"a proof that holds", honest, []string{"--network", v.network}, exitOK},
		{"of little age", honest, []string{"--network", v.network, "--at-most", "1h"}, exitOK},
		{"too old", honest, []string{"--network", v.network, "--at-most", "10s"}, exitUnverified},
		{"old at a given time", honest, []string{"--network", v.network, "--at-most", "1h", "--now", "2023-11-16T00:00:00Z"}, exitUnverified},
		{"bent", bent, []string{"--network", v.network}, exitUnverified},
		{"empty", nil, []string{"--network", v.network}, exitUnverified},
		{"of another network", honest, []string{"--network", other}, exitUnverified},
		{"from long after the genesis", honest, []string{"--network", v.network, "--now", "2024-11-16T00:00:00Z"}, exitUnverified},
		{"the same, which is permitted", honest, []string{"--network", v.network, "--now", "2024-11-16T00:00:00Z", "--trusting-period", "0"}, exitOK},
		{"another roster", honest, []string{"--network", v.network, "--trusted", "1:" + strings.Repeat("1", 64)}, exitUnverified},
		{"no network", honest, nil, exitUsage},
		{"a time that is none", honest, []string{"--network", v.network, "--now", "noon"}, exitUsage},
		{"a roster that is none", honest, []string{"--network", v.network, "--trusted", "1"}, exitUsage},
		{"an argument", honest, []string{"--network", v.network, "file"}, exitUsage},
		{"help", nil, []string{"--help"}, exitOK},
	} {
		code, out, errs := v.verify(c.in, c.args...)
		if code != c.want || (code == exitOK && c.in != nil) != (out != "") || (code != exitOK) != (errs != "") && c.in != nil {
			t.Errorf("%s: code %d, want %d; it prints %q and %q", c.name, code, c.want, out, errs)
		}
	}
}
