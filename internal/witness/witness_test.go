package witness_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/testwitness"
	"github.com/aweigh/aweigh/internal/witness"
	"github.com/aweigh/aweigh/lineage"
)

// log is the hashes of entries, as package tlog stores them.
type log []tlog.Hash

func (l log) ReadHashes(at []int64) (all []tlog.Hash, err error) {
	for _, i := range at {
		all = append(all, l[i])
	}
	return all, nil
}

// of is a log of so many entries, the last ones of which have a mark.
func of(t *testing.T, common, size int64, mark string) (l log) {
	for i := range size {
		e := fmt.Sprint("entry ", i)
		if i >= common {
			e += mark
		}
		more, err := tlog.StoredHashes(i, []byte(e), l)
		if err != nil {
			t.Fatal(err)
		}
		l = append(l, more...)
	}
	return l
}

// submission is of the first entries of a log.
func (l log) submission(t *testing.T, size, old int64) witness.Submission {
	t.Helper()
	root, err := tlog.TreeHash(size, l)
	if err != nil {
		t.Fatal(err)
	}
	c := lineage.Checkpoint{Origin: "aweigh/test", Head: lineage.Head{Size: size, Root: aweigh.Hash(root)}, More: []string{"block 7"}}
	return witness.Submission{
		Checkpoint: c, Note: []byte(c.Text() + "\n— anchor AAAA\n"), Old: old,
		Prove: func(old int64) (tlog.TreeProof, error) { return tlog.ProveTree(size, old, l) },
	}
}

// ask submits to one witness, at a handler.
func ask(t *testing.T, h http.Handler, s witness.Submission) (witness.Cosigned, error) {
	t.Helper()
	server := httptest.NewServer(h)
	defer server.Close()
	p, err := witness.Parse("witness w " + testwitness.New("w.example").VKey() + " " + server.URL + "/prefix\nquorum w\n")
	if err != nil {
		t.Fatal(err)
	}
	return p.Cosign(context.Background(), s)
}

// TestWitnessesFollowALog: from whatever size a witness knows, it gets the proof, and its line stands on the note.
func TestWitnessesFollowALog(t *testing.T) {
	l := of(t, 700, 700, "")
	w := testwitness.New("w.example")
	for _, step := range []struct{ size, old int64 }{{0, 0}, {1, 0}, {1, 1}, {300, 1}, {300, 300}, {513, 0}, {700, 300}, {700, 600}} {
		s := l.submission(t, step.size, step.old)
		c, err := ask(t, w, s)
		if err != nil {
			t.Fatalf("%v: %v", step, err)
		}
		text, lines, _ := strings.Cut(string(c.Note), "\n\n")
		if text+"\n" != s.Checkpoint.Text() || strings.Count(lines, "\n") != 2 || !strings.Contains(lines, "\n— w.example ") || len(c.Failed) > 0 {
			t.Errorf("%v: %s", step, c.Note)
		}
	}
}

// TestSplitViewsAreFound: a witness that follows one history refuses another, shorter, as long or longer, and that is
// no lack of signers.
func TestSplitViewsAreFound(t *testing.T) {
	w := testwitness.New("w.example")
	if _, err := ask(t, w, of(t, 300, 300, "").submission(t, 300, 0)); err != nil {
		t.Fatal(err)
	}
	for _, size := range []int64{300, 301, 600} {
		for _, old := range []int64{0, 200, 300} {
			_, err := ask(t, w, of(t, 200, 600, "other").submission(t, size, old))
			if !errors.Is(err, witness.ErrSplit) || errors.Is(err, witness.ErrFew) || !strings.Contains(err.Error(), "witness w: ") {
				t.Errorf("%d entries from %d: %v", size, old, err)
			}
		}
	}
	// One of fewer entries may be a node that is behind.
	if _, err := ask(t, w, of(t, 200, 299, "other").submission(t, 299, 0)); !errors.Is(err, witness.ErrFew) || errors.Is(err, witness.ErrSplit) {
		t.Errorf("%v", err)
	}
	if _, err := ask(t, w, of(t, 300, 301, "").submission(t, 301, 0)); err != nil {
		t.Errorf("the witness changed its mind: %v", err)
	}
}

// TestASplitViewIsNotOutvoted: nothing is shown if one witness knows another history, whatever the quorum.
func TestASplitViewIsNotOutvoted(t *testing.T) {
	a, b := testwitness.New("a.example"), testwitness.New("b.example")
	at := [2]*httptest.Server{httptest.NewServer(a), httptest.NewServer(b)}
	defer at[0].Close()
	defer at[1].Close()
	p, err := witness.Parse(fmt.Sprintf("witness a %s %s\nwitness b %s %s\nquorum a\n", a.VKey(), at[0].URL, b.VKey(), at[1].URL))
	if err != nil {
		t.Fatal(err)
	}
	only := "witness b " + b.VKey() + " " + at[1].URL + "\nquorum b\n"
	if p, err := witness.Parse(only); err != nil {
		t.Fatal(err)
	} else if _, err := p.Cosign(context.Background(), of(t, 2, 3, "other").submission(t, 3, 0)); err != nil {
		t.Fatal(err)
	}
	c, err := p.Cosign(context.Background(), of(t, 4, 4, "").submission(t, 4, 0))
	if !errors.Is(err, witness.ErrSplit) || len(c.Names) != 1 {
		t.Errorf("%v: %v", c.Names, err)
	}
}

// TestBadAnswersAreNoCosignatures: of what a witness may answer, nothing but its verified line gets onto the note.
func TestBadAnswersAreNoCosignatures(t *testing.T) {
	s := of(t, 9, 9, "").submission(t, 9, 5)
	w, x := testwitness.New("w.example"), testwitness.New("x.example")
	text := s.Checkpoint.Text()
	x.Name = w.Name
	status := func(code int, contentType, body string) http.HandlerFunc {
		return func(to http.ResponseWriter, _ *http.Request) {
			to.Header().Set("Content-Type", contentType)
			to.WriteHeader(code)
			_, _ = io.WriteString(to, body)
		}
	}
	var asked atomic.Int64
	conflicts := func(size func(n int64) int64) http.HandlerFunc {
		return func(to http.ResponseWriter, r *http.Request) {
			status(409, "text/x.tlog.size", fmt.Sprintln(size(asked.Add(1))))(to, r)
		}
	}
	elsewhere := httptest.NewServer(w)
	defer elsewhere.Close()
	const unsigned = "its answer is not a cosignature"
	for what, x := range map[string]struct {
		h    http.Handler
		want string
	}{
		"another key":            {status(200, "", x.Sign(text)), unsigned},
		"another text":           {status(200, "", w.Sign(text+"more\n")), unsigned},
		"a text of its own":      {status(200, "", "\nanother\n\n"+w.Sign("another\n")), unsigned},
		"nothing":                {status(200, "", ""), unsigned},
		"a page":                 {status(200, "text/html", "<html>"), unsigned},
		"control characters":     {status(200, "", "— w.example \x00\n"), unsigned},
		"500":                    {status(500, "", w.Sign(text)), "it refuses: 500 "},
		"404":                    {status(404, "", ""), "does not know the log"},
		"403":                    {status(403, "", ""), "no key of an anchor"},
		"429":                    {status(429, "", ""), "no more requests"},
		"a status of its own":    {status(299, "", w.Sign(text)), "299"},
		"no content":             {status(204, "", ""), "204"},
		"409 without a size":     {status(409, "text/x.tlog.size", "many\n"), "409 without a size"},
		"409 of a negative size": {status(409, "text/x.tlog.size", "-1\n"), "409 without a size"},
		"409 of a large size":    {status(409, "text/x.tlog.size", "9223372036854775808\n"), "409 without a size"},
		"409 of another type":    {status(409, "text/html", "5\n"), "409 without a size"},
		"409 of a longer log":    {status(409, "text/x.tlog.size", "10\n"), "it cosigned 10 entries"},
		"409 of the old size":    {status(409, "text/x.tlog.size", "5\n"), "3 times"},
		"409 of all sizes":       {conflicts(func(n int64) int64 { return n % 9 }), "3 times"},
		"422 of an empty proof":  {after(&asked, status(409, "text/x.tlog.size", "0\n"), status(422, "", "")), "422"},
		"a redirect":             {http.RedirectHandler(elsewhere.URL+"/add-checkpoint", http.StatusTemporaryRedirect), "307"},
		"an endless body": {http.HandlerFunc(func(to http.ResponseWriter, r *http.Request) {
			line := strings.Repeat(w.Sign(text), 100)
			for r.Context().Err() == nil {
				if _, err := io.WriteString(to, line); err != nil {
					return
				}
			}
		}), "more than 65536 bytes"},
		"a broken connection": {http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }), "EOF"},
	} {
		asked.Store(0)
		c, err := ask(t, x.h, s)
		if !errors.Is(err, witness.ErrFew) || errors.Is(err, witness.ErrSplit) || string(c.Note) != string(s.Note) || len(c.Names) > 0 ||
			!strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: %v, %q", what, err, c.Note)
		}
	}
	// Lines of others are ignored, and those of the witness are taken.
	c, err := ask(t, status(200, "", x.Sign(text)+"— other.example AAAA\n"+w.Sign(text)), s)
	if err != nil || strings.Count(string(c.Note), "— w.example ") != 1 || strings.Contains(string(c.Note), "other") {
		t.Errorf("%v: %s", err, c.Note)
	}
}

// after answers the first request by one handler, and the others by another.
func after(asked *atomic.Int64, first, then http.Handler) http.HandlerFunc {
	return func(to http.ResponseWriter, r *http.Request) {
		if asked.Add(1) == 1 {
			first.ServeHTTP(to, r)
			return
		}
		then.ServeHTTP(to, r)
	}
}

// TestSlowWitnessesHoldNoOtherUp: the first witness answers only after the second one did.
func TestSlowWitnessesHoldNoOtherUp(t *testing.T) {
	fast, slow := testwitness.New("f.example"), testwitness.New("s.example")
	signed := make(chan struct{})
	atFast := httptest.NewServer(http.HandlerFunc(func(to http.ResponseWriter, r *http.Request) {
		fast.ServeHTTP(to, r)
		close(signed)
	}))
	defer atFast.Close()
	atSlow := httptest.NewServer(http.HandlerFunc(func(to http.ResponseWriter, r *http.Request) {
		<-signed
		slow.ServeHTTP(to, r)
	}))
	defer atSlow.Close()
	p, err := witness.Parse(fmt.Sprintf("witness s %s %s\nwitness f %s %s\ngroup g all s f\nquorum g\n", slow.VKey(), atSlow.URL, fast.VKey(), atFast.URL))
	if err != nil {
		t.Fatal(err)
	}
	c, err := p.Cosign(context.Background(), of(t, 3, 3, "").submission(t, 3, 0))
	if err != nil || len(c.Names) != 2 {
		t.Errorf("%v: %v", c.Names, err)
	}
}

// TestSilentWitnessesAreLeftOut: one that does not answer is waited for as long as the limit, and no longer.
func TestSilentWitnessesAreLeftOut(t *testing.T) {
	defer witness.SetLimit(20 * time.Millisecond)()
	end := make(chan struct{})
	silent := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-end })
	trickles := http.HandlerFunc(func(to http.ResponseWriter, r *http.Request) {
		to.(http.Flusher).Flush()
		<-end
	})
	server := [2]*httptest.Server{httptest.NewServer(silent), httptest.NewServer(trickles)}
	defer server[0].Close()
	defer server[1].Close()
	defer close(end)
	p, err := witness.Parse(fmt.Sprintf("witness a %s %s\nwitness b %s %s\nwitness c %s\nquorum a\n", testwitness.New("a.example").VKey(), server[0].URL,
		testwitness.New("b.example").VKey(), server[1].URL, testwitness.New("c.example").VKey()))
	if err != nil {
		t.Fatal(err)
	}
	c, err := p.Cosign(context.Background(), of(t, 3, 3, "").submission(t, 3, 0))
	if !errors.Is(err, witness.ErrFew) || !errors.Is(err, context.DeadlineExceeded) || len(c.Failed) != 3 {
		t.Errorf("%v, %v", c.Failed, err)
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := p.Cosign(ended, of(t, 3, 3, "").submission(t, 3, 0)); !errors.Is(err, context.Canceled) || errors.Is(err, witness.ErrFew) {
		t.Errorf("interrupted: %v", err)
	}
}
