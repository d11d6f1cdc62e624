package main

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/form"
	"github.com/aweigh/aweigh/scope"
)

// errOld refuses a network whose first anchors are known from too long ago.
var errOld = errors.New("the network's first anchors are known from too long ago")

// verifier is what a reader knows and asks for beside a proof.
type verifier struct {
	network aweigh.NetworkID
	trusted *scope.Trusted // nil: none
	period  time.Duration  // how old the genesis may be without trusted; 0: any age
	atMost  time.Duration  // 0: any age
	now     time.Time
}

// verify verifies an encoded proof, and gives what it shows.
func (v *verifier) verify(raw []byte) (shows form.Range, err error) {
	p, err := scope.DecodeRangeProof(raw)
	if err != nil {
		return shows, fmt.Errorf("this is not a proof of what keys hold, or it is damaged or cut off: %w", err)
	}
	r, err := p.Verify(v.network)
	if err != nil {
		return shows, err
	}
	for i := range p.Parts {
		if err := v.trusts(p.Parts[i].Ancestry.Root()); err != nil {
			return shows, err
		}
	}
	if err := r.Fresh(aweigh.InstantOf(v.now), v.atMost); err != nil {
		return shows, err
	}
	return form.RangeOf(p, r, true, v.now), nil
}

// trusts reports whether rosters that lead from a genesis are ones to begin with.
func (v *verifier) trusts(g scope.Genesis, chain []scope.Handover) error {
	if v.trusted != nil {
		return v.trusted.In(g, chain)
	}
	if age := v.now.Sub(g.Time.Time()); v.period > 0 && age > v.period {
		return fmt.Errorf("%w: the genesis is of %s, more than %s ago; "+
			"name a recent roster by --trusted, or allow more by --trusting-period",
			errOld, g.Time.Time().Format(time.DateOnly), v.period)
	}
	return nil
}

// one verifies the proof that is all of an input.
func (v *verifier) one(in io.Reader, out io.Writer) error {
	raw, err := io.ReadAll(io.LimitReader(in, scope.MaxProofBytes+1))
	if err != nil {
		return err
	}
	shows, err := v.verify(raw)
	if err != nil {
		return err
	}
	return encode(out, "  ", shows)
}

// verdict is about one proof of many: what it shows, or why it does not hold.
type verdict struct {
	Code  int         `json:"code"` // the exit code of a program that verifies it alone
	Shows *form.Range `json:"shows,omitempty"`
	Error string      `json:"error,omitempty"`
}

func (v *verifier) verdict(raw []byte) verdict {
	shows, err := v.verify(raw)
	if err != nil {
		return verdict{Code: codeOf(err), Error: err.Error()}
	}
	return verdict{Code: exitOK, Shows: &shows}
}

// all verifies each proof of a stream, and writes a line about each.
func (v *verifier) all(in io.Reader, out io.Writer) error {
	r := bufio.NewReaderSize(in, 1<<16)
	var raw []byte
	for {
		var size [4]byte
		if _, err := io.ReadFull(r, size[:]); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("the length of a proof is cut off: %w", err)
		}
		n := binary.BigEndian.Uint32(size[:])
		if n > scope.MaxProofBytes {
			return fmt.Errorf("a proof of %d bytes; at most %d are read", n, scope.MaxProofBytes)
		}
		if uint32(cap(raw)) < n {
			raw = make([]byte, n)
		}
		raw = raw[:n]
		if _, err := io.ReadFull(r, raw); err != nil {
			return fmt.Errorf("a proof is cut off: %w", err)
		}
		if err := encode(out, "", v.verdict(raw)); err != nil {
			return err
		}
	}
}
