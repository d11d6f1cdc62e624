// Package witness asks witnesses of transparency logs to cosign a checkpoint, by C2SP's tlog-witness
// (https://c2sp.org/tlog-witness). A witness cosigns a checkpoint only if the log grew from the one that it cosigned
// before, so an honest witness cosigns one history alone.
package witness

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/aweigh/aweigh/lineage"
)

// Errors about what witnesses signed.
var (
	ErrFew   = errors.New("too few witnesses")
	ErrSplit = errors.New("two histories")
)

const (
	maxAnswer = 64 << 10 // bytes
	attempts  = 3        // as other clients may submit the same log
)

// within bounds all requests to one witness together.
var within = 10 * time.Second

// client follows no redirect: a policy names where a witness is.
var client = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}

// Submission is a checkpoint to cosign.
type Submission struct {
	Checkpoint lineage.Checkpoint
	Note       []byte // the checkpoint with signatures of the log
	Old        int64  // the size that witnesses are supposed to have cosigned last

	// Prove returns the proof that the first old entries, at least one, are the beginning of the checkpoint's. It is
	// called by several goroutines.
	Prove func(old int64) (tlog.TreeProof, error)
}

// Cosigned is the outcome of a submission.
type Cosigned struct {
	Note   []byte   // with the cosignatures of the witnesses
	Names  []string // in the policy, of the witnesses that signed
	Failed []error  // of the other witnesses, each with its name
}

// Cosign asks all witnesses at once to cosign, waits at most 10 seconds, and returns what it verified. The error wraps
// ErrFew if the signers are too few by the policy, and ErrSplit if a witness cosigned entries that are not the
// beginning of these.
func (p *Policy) Cosign(ctx context.Context, s Submission) (c Cosigned, err error) {
	lines, failures := make([]string, len(p.witnesses)), make([]error, len(p.witnesses))
	var asking sync.WaitGroup
	for i := range p.witnesses {
		asking.Go(func() { lines[i], failures[i] = p.witnesses[i].cosign(ctx, &s) })
	}
	asking.Wait()
	if err := ctx.Err(); err != nil {
		return c, err
	}
	c.Note = bytes.Clone(s.Note)
	for i := range p.witnesses {
		if err := failures[i]; err != nil {
			c.Failed = append(c.Failed, fmt.Errorf("witness %s: %w", p.witnesses[i].label, err))
			continue
		}
		c.Note, c.Names = append(c.Note, lines[i]...), append(c.Names, p.witnesses[i].label)
	}
	switch failed := list(c.Failed); {
	case errors.Is(failed, ErrSplit): // even if the others are enough
		return c, failed
	case !p.met(c.Names):
		return c, fmt.Errorf("%w; %w", p.few(c.Names), failed)
	}
	return c, nil
}

func list(errs []error) (all error) {
	for _, err := range errs {
		if all == nil {
			all = err
		} else {
			all = fmt.Errorf("%w; %w", all, err)
		}
	}
	return all
}

func (p *Policy) few(names []string) error {
	return fmt.Errorf("%w: %d of %d signed, and the quorum is %s", ErrFew, len(names), len(p.witnesses), p.quorum)
}

// Check returns the names, in the policy, of the witnesses that cosigned the checkpoint of a note. The error wraps
// ErrFew if these are too few.
func (p *Policy) Check(note []byte) (names []string, err error) {
	text, lines, _ := strings.Cut(string(note), "\n\n")
	for i := range p.witnesses {
		if _, err := p.witnesses[i].line(text+"\n", lines); err == nil {
			names = append(names, p.witnesses[i].label)
		}
	}
	if !p.met(names) {
		return names, p.few(names)
	}
	return names, nil
}

// cosign returns the witness's line.
func (w *witness) cosign(ctx context.Context, s *Submission) (string, error) {
	if w.url == "" {
		return "", errors.New("the policy has no URL of it")
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	size := s.Checkpoint.Head.Size
	for old, n := s.Old, 0; n < attempts; n++ {
		status, body, err := w.submit(ctx, s, old)
		switch {
		case err != nil:
			return "", err
		case status == http.StatusOK:
			line, err := w.line(s.Checkpoint.Text(), body)
			if err != nil {
				err = fmt.Errorf("its answer is not a cosignature of the checkpoint by its key: %w", err)
			}
			return line, err
		case status == http.StatusUnprocessableEntity && old > 0:
			return "", w.split(s, old)
		case status != http.StatusConflict:
			return "", refusal(status)
		}
		knows, err := strconv.ParseInt(strings.TrimSuffix(body, "\n"), 10, 64)
		switch {
		case err != nil || knows < 0:
			return "", fmt.Errorf("it answers %d without a size", status)
		case knows == old && old == size:
			return "", w.split(s, old)
		case knows > size:
			return "", fmt.Errorf("it cosigned %d entries, and these are %d: the node is behind, or there are two histories", knows, size)
		}
		old = knows
	}
	return "", fmt.Errorf("it answers %d times that it cosigned another size", attempts)
}

func (w *witness) split(s *Submission, old int64) error {
	return fmt.Errorf("%w of %s: it answers that it cosigned %d entries which are not the beginning of these %d: anchors signed both, or the witness is wrong",
		ErrSplit, s.Checkpoint.Origin, old, s.Checkpoint.Head.Size)
}

// refusal explains a status.
func refusal(status int) error {
	why := map[int]string{
		http.StatusNotFound:        "it does not know the log",
		http.StatusForbidden:       "it has no key of an anchor that signed",
		http.StatusTooManyRequests: "it takes no more requests at the moment",
	}[status]
	if why == "" {
		why = "it refuses"
	}
	return fmt.Errorf("%s: %d %s", why, status, http.StatusText(status))
}

// submit sends a request, and returns the status and the body of the answer: of 409 only a size.
func (w *witness) submit(ctx context.Context, s *Submission, old int64) (status int, body string, err error) {
	var proof tlog.TreeProof
	if old > 0 {
		if proof, err = s.Prove(old); err != nil {
			return 0, "", err
		}
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "old %d\n", old)
	for i := range proof {
		b.WriteString(base64.StdEncoding.EncodeToString(proof[i][:]) + "\n")
	}
	b.WriteByte('\n')
	b.Write(s.Note)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url, &b)
	if err != nil {
		return 0, "", err
	}
	resp, err := client.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	switch {
	case err != nil:
		return 0, "", err
	case len(raw) > maxAnswer:
		return 0, "", fmt.Errorf("its answer has more than %d bytes", maxAnswer)
	case resp.StatusCode == http.StatusConflict && resp.Header.Get("Content-Type") != "text/x.tlog.size":
		raw = nil
	}
	return resp.StatusCode, string(raw), nil
}
