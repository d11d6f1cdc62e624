package requestlog

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/internal/authn"
)

var denied = connect.NewError(connect.CodePermissionDenied, errors.New("not for you"))

// recorded are the lines of some requests under rules.
func recorded(t *testing.T, rules []string, note func(*Log)) (lines []line) {
	t.Helper()
	parsed, err := ParseRules(rules)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	l, err := Open(Config{Path: path, Rules: parsed, Node: "node1"})
	if err != nil {
		t.Fatal(err)
	}
	note(l)
	finish(t, l)
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for text := range strings.Lines(string(raw)) {
		var x line
		if err := json.Unmarshal([]byte(text), &x); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, x)
	}
	return lines
}

// finish writes what waits.
func finish(t *testing.T, l *Log) {
	t.Helper()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := l.Run(ended); err != nil {
		t.Fatal(err)
	}
}

// afterMany reads a key in a transaction that puts more keys before than a line holds.
func afterMany(key string) *aweighv1.TxnRequest {
	t := new(aweighv1.TxnRequest)
	for range maxKeys + 1 {
		put := &aweighv1.PutRequest{Key: []byte("/n")}
		t.Success = append(t.Success, &aweighv1.Op{Op: &aweighv1.Op_Put{Put: put}})
	}
	read := &aweighv1.RangeRequest{Key: []byte(key)}
	t.Success = append(t.Success, &aweighv1.Op{Op: &aweighv1.Op_Range{Range: read}})
	return t
}

func TestLevelsChooseWhatIsRecorded(t *testing.T) {
	read := func(key, end string) any { return &aweighv1.RangeRequest{Key: []byte(key), RangeEnd: []byte(end)} }
	for name, x := range map[string]struct {
		rules   []string
		request any
		err     error
		want    string // outcome; empty: not recorded
	}{
		"a read":         {nil, read("/a", ""), nil, ""},
		"a refused read": {nil, read("/a", ""), denied, "refused"},
		"one that etcd refuses": {nil, read("/a", ""), status.Error(codes.Unauthenticated, "who?"),
			"refused"},
		"one that fails":                      {nil, read("/a", ""), status.Error(codes.OutOfRange, "compacted"), ""},
		"a read at level request":             {[]string{"/a=request"}, read("/a", ""), nil, "done"},
		"one that fails at level request":     {[]string{"/a=request"}, read("/a", ""), errors.New("x"), "failed"},
		"another read":                        {[]string{"/a=request"}, read("/b", ""), nil, ""},
		"the longest prefix":                  {[]string{"/a=request", "/a/b=metadata"}, read("/a/b/c", ""), nil, ""},
		"the longest prefix, refused":         {[]string{"=request", "/a/b=none"}, read("/a/b/c", ""), denied, ""},
		"a range with keys of a higher level": {[]string{"/m=request"}, read("/a", "/z"), nil, "done"},
		"all keys, with some of such":         {[]string{"/m=request"}, read("/a", "\x00"), nil, "done"},
		"a range beside them":                 {[]string{"/m=request"}, read("/n", "/z"), nil, ""},
		"no keys":                             {[]string{"=none"}, &aweighv1.StatusRequest{}, denied, ""},
		"a read that names no keys":           {[]string{"/a=request"}, &aweighv1.BackupRequest{}, nil, "done"},
		"a read in a transaction": {[]string{"/a=request"}, &aweighv1.TxnRequest{Success: []*aweighv1.Op{
			{Op: &aweighv1.Op_Range{Range: read("/a", "").(*aweighv1.RangeRequest)}},
		}}, nil, "done"},
		"a write":                     {[]string{"/a=request"}, &aweighv1.PutRequest{Key: []byte("/a")}, nil, ""},
		"a read after many keys":      {[]string{"/n=none", "/m=request"}, afterMany("/m"), nil, "done"},
		"a refusal after many keys":   {[]string{"/n=none"}, afterMany("/m"), denied, "refused"},
		"many keys that do not count": {[]string{"=none"}, afterMany("/m"), denied, ""},
	} {
		t.Run(name, func(t *testing.T) {
			sees := Sight(Reads)
			switch x.request.(type) {
			case *aweighv1.PutRequest, *aweighv1.StatusRequest:
				sees = Writes
			}
			lines := recorded(t, x.rules, func(l *Log) { l.Note(t.Context(), "api", "/aweigh.v1.Node/Any", x.request, sees, x.err) })
			if len(lines) > 1 || (len(lines) == 1) != (x.want != "") || len(lines) == 1 && lines[0].Outcome != x.want {
				t.Errorf("%+v, want %q", lines, x.want)
			}
		})
	}
	for _, bad := range [][]string{{"/a"}, {"/a=everything"}, {"/a=none", "/a=request"}} {
		if _, err := ParseRules(bad); !errors.Is(err, ErrLevel) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestLinesNameCallersAndNoValues(t *testing.T) {
	id, err := authn.NewIdentity(authn.User, "alice")
	if err != nil {
		t.Fatal(err)
	}
	put := &aweighv1.PutRequest{Key: []byte("/a\xff"), Value: []byte("hidden-value"),
		Once: &aweighv1.Once{Justification: "hidden-too"}}
	compare := &aweighv1.Compare{Key: []byte("/c"), Value: []byte("hidden-value")}
	request := &aweighv1.TxnRequest{Compare: []*aweighv1.Compare{compare}, Success: []*aweighv1.Op{
		{Op: &aweighv1.Op_Put{Put: put}}, {Op: &aweighv1.Op_Range{Range: &aweighv1.RangeRequest{Key: []byte("/r"),
			RangeEnd: []byte("/s")}}},
	}}
	lines := recorded(t, []string{"=request"}, func(l *Log) {
		l.Note(authn.WithIdentity(t.Context(), id), "api", "/aweigh.v1.Node/Txn", request, Reads, denied)
	})
	want := []keyText{{"/c", ""}, {"/a\uFFFD", ""}, {"/r", "/s"}}
	if len(lines) != 1 {
		t.Fatalf("%+v", lines)
	}
	x := lines[0]
	if x.Caller != "user:alice" || x.Call != "aweigh.v1.Node/Txn" || x.Node != "node1" || x.Port != "api" ||
		x.Kind != "request" ||
		x.Code != "PermissionDenied" || !strings.Contains(x.Reason, "not for you") ||
		fmt.Sprint(x.Keys) != fmt.Sprint(want) {
		t.Errorf("%+v", x)
	}
	if text := string(x.encode()); strings.Contains(text, "hidden") {
		t.Errorf("it has a value: %s", text)
	}
}

func TestFilesAreRotatedAndBounded(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "audit.jsonl")
	for range 2 { // it appends to what is there
		l, err := Open(Config{Path: path, Size: 1000, Files: 3})
		if err != nil {
			t.Fatal(err)
		}
		for range 50 {
			l.Note(t.Context(), "api", "/aweigh.v1.Node/Range", nil, Reads, denied)
		}
		finish(t, l)
		if c := l.Counts(); c.Written != 50 || c.Lost != 0 {
			t.Errorf("%+v", c)
		}
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 3 {
		t.Fatalf("%v, %v", files, err)
	}
	for _, f := range files {
		info, err := f.Info()
		if err != nil || info.Size() == 0 || info.Size() > 1000 || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %d bytes, %s, %v", f.Name(), info.Size(), info.Mode(), err)
		}
		raw, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil || !bytes.HasSuffix(raw, []byte("}\n")) {
			t.Errorf("%s: %q, %v", f.Name(), raw, err)
		}
	}
}

// TestFailuresAreCounted: a file on a full disk, or one that went with its directory, loses lines and stops no request.
func TestFailuresAreCounted(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "gone")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	l, err := Open(Config{Path: filepath.Join(dir, "audit.jsonl"), Size: 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	for range waiting + 10 { // more than wait in memory
		l.Note(t.Context(), "api", "/aweigh.v1.Node/Range", nil, Reads, denied)
	}
	finish(t, l)
	if c := l.Counts(); c.Written != 1 || c.Lost != waiting+9 { // the first goes into the file that is open
		t.Errorf("%+v", c)
	}
	if _, err := Open(Config{Path: filepath.Join(dir, "audit.jsonl")}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("in no directory: %v", err)
	}
	var none *Log
	none.Note(t.Context(), "api", "/x", nil, nil, denied)
	if none.Counts() != (Counts{}) || none.Run(t.Context()) != nil || none.Close() != nil {
		t.Error("no record is not one that does nothing")
	}
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("this system has no /dev/full")
	}
	l = &Log{cfg: l.cfg, lines: make(chan []byte, 1), file: full}
	if err := l.append([]byte("a line\n")); err == nil || l.file != nil {
		t.Errorf("a full disk took a line: %v", err)
	}
}

// TestTornLinesSpoilNoOther: after a crash that left a part of a line, the next line is one of its own.
func TestTornLinesSpoilNoOther(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	if err := os.WriteFile(path, []byte("{\"kind\":\"request\"}\n{\"kind\":\"req"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		l, err := Open(Config{Path: path})
		if err != nil {
			t.Fatal(err)
		}
		l.Note(t.Context(), "api", "/aweigh.v1.Node/Range", nil, Reads, denied)
		finish(t, l)
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var whole []bool
	for text := range strings.Lines(string(raw)) {
		whole = append(whole, json.Valid([]byte(text)))
	}
	if fmt.Sprint(whole) != "[true false true true]" {
		t.Errorf("the file is\n%s", raw)
	}
}

// TestLooseFilesAreTightened: files that other users could read are for the node's user alone once the node has begun.
func TestLooseFilesAreTightened(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	for _, name := range []string{path, path + ".1"} {
		if err := os.WriteFile(name, []byte("{}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(name, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	l, err := Open(Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	finish(t, l)
	for _, name := range []string{path, path + ".1"} {
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
}
