package main

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/client"
	"github.com/aweigh/aweigh/internal/show"
	"github.com/aweigh/aweigh/scope"
)

// proofFlags are the flags of a read whose answer carries its proof.
type proofFlags struct {
	file     string
	verified bool
	network  string
	atMost   time.Duration
	block    uint64
	scope    string
	command  *cobra.Command
}

func (a *app) proofFlags(c *cobra.Command, without ...string) *proofFlags {
	f := &proofFlags{command: c}
	c.Flags().StringVar(&f.file, "proof", "", "prove the answer, verify it here, and write the proof to this file")
	c.Flags().BoolVar(&f.verified, "verified", false, "believe no node: the answer carries its proof, which is verified here")
	c.Flags().StringVar(&f.network, "network", "", "with --proof and --verified: identity of the network (default: that of the one that runs here)")
	c.Flags().DurationVar(&f.atMost, "at-most", 10*time.Second, "with --proof and --verified: refuse what was the newest longer ago than this, by the clock here")
	c.Flags().Uint64Var(&f.block, "block", 0, "with --proof and --verified: as of this block of the root scope, or of the one of --scope, and not of the newest")
	c.Flags().StringVar(&f.scope, "scope", "", "with --block: the scope whose block it is: its prefix, or how its ID begins (default: the root scope)")
	c.MarkFlagsMutuallyExclusive("block", "at-most")
	for _, flag := range without {
		c.MarkFlagsMutuallyExclusive("proof", flag)
		c.MarkFlagsMutuallyExclusive("verified", flag)
	}
	a.trustingFlags(c)
	return f
}

func (f *proofFlags) asked() bool { return f.verified || f.command.Flags().Changed("proof") }

// check refuses what a read without a proof would ignore.
func (f *proofFlags) check() error {
	if f.command.Flags().Changed("block") && f.block == 0 {
		return fmt.Errorf("%w: --block is the height of a block, 1 or more", errUsage)
	}
	if f.scope != "" && f.block == 0 {
		return fmt.Errorf("%w: --scope goes with --block; a read without it goes to the scope that decides about the key", errUsage)
	}
	for _, flag := range []string{"network", "at-most", "block", "trusted"} {
		if f.command.Flags().Changed(flag) && !f.asked() {
			return fmt.Errorf("%w: --%s is for a read with --verified or --proof", errUsage, flag)
		}
	}
	return nil
}

// provenRange asks for a proof of what the keys of a range hold, verifies it, and writes it to the file.
func (a *app) provenRange(ctx context.Context, s *session, f *proofFlags, key, end []byte) (p *scope.RangeProof, r scope.RangeReport, err error) {
	if len(end) > 0 && !scope.ToEnd(end) && bytes.Compare(key, end) >= 0 {
		return p, r, fmt.Errorf("%w: no key is from %q on and before %q", errUsage, key, end)
	}
	if f.command.Flags().Changed("network") {
		if _, err := networkOf(f.network); err != nil {
			return p, r, err
		}
	} else if f.network = s.network; f.network == "" {
		return p, r, fmt.Errorf("%w: a proof needs the network's identity, which is known only of a network that was found here; give it with --network", errUsage)
	}
	var file *reserved
	if f.command.Flags().Changed("proof") {
		if file, err = reserveNew(f.file); err != nil {
			return p, r, err
		}
		defer file.release()
	}
	defer s.waitsFor("a final block that claims what the keys hold, which takes a quorum")()
	id, err := networkOf(f.network)
	if err != nil {
		return p, r, err
	}
	p, r, err = s.Client.In(f.scope).Verified(id, f.atMost, a.trustsRange).RangeAt(ctx, key, end, aweigh.Height(f.block))
	if err != nil || file == nil {
		return p, r, err
	}
	return p, r, file.write(p.Encode())
}

// provenFor verifies a proof for a network, and that it is no older than a time; 0 permits any age.
func (a *app) provenFor(p *scope.RangeProof, network aweigh.NetworkID, atMost time.Duration) (r scope.RangeReport, err error) {
	if claimed := p.Parts[0].Ancestry.Genesis.Network(); claimed != network {
		return r, otherNetwork("the proof", claimed, network)
	}
	if r, err = p.Verify(network); err != nil {
		return r, err
	}
	if err := a.trustsRange(p); err != nil {
		return r, err
	}
	if err := r.Fresh(aweigh.InstantOf(time.Now()), atMost); err != nil {
		return r, fmt.Errorf("%w; read it again, or give a larger --at-most", err)
	}
	return r, nil
}

// trustsRange refuses a proof that does not lead through the roster that the user trusts.
func (a *app) trustsRange(p *scope.RangeProof) error {
	for i := range p.Parts {
		if err := a.trusts.check(p.Parts[i].Ancestry.Root()); err != nil {
			return err
		}
	}
	return nil
}

// getProven reads keys with a proof.
func (a *app) getProven(ctx context.Context, s *session, f *proofFlags, key, end []byte) error {
	ctx, cancel := s.limited(ctx)
	defer cancel()
	p, r, err := a.provenRange(ctx, s, f, key, end)
	if err != nil {
		return err
	}
	if err := s.Printer.Proven(p, r, true, time.Now()); err != nil {
		return err
	}
	if len(end) == 0 && len(r.Kvs) == 0 {
		if f.block > 0 {
			return fmt.Errorf("%w: %q was absent after block %d, which the proof shows", client.ErrNotFound, key, f.block)
		}
		return fmt.Errorf("%w: %q is absent, which the proof shows", client.ErrNotFound, key)
	}
	return nil
}

// lsProven lists keys with a proof.
func (a *app) lsProven(ctx context.Context, s *session, f *proofFlags, key, end []byte) error {
	ctx, cancel := s.limited(ctx)
	defer cancel()
	p, r, err := a.provenRange(ctx, s, f, key, end)
	if err != nil {
		return err
	}
	return s.Printer.ProvenKeys(p, r, time.Now())
}

// verifiedRange verifies a proof of what keys hold, and shows it.
func (a *app) verifiedRange(p show.Printer, proof *scope.RangeProof, network string, pinned bool, atMost time.Duration) error {
	id := proof.Parts[0].Ancestry.Genesis.Network()
	if pinned {
		var err error
		if id, err = networkOf(network); err != nil {
			return err
		}
	}
	r, err := a.provenFor(proof, id, atMost)
	if err != nil {
		return err
	}
	if err := p.Proven(proof, r, pinned, time.Now()); err != nil || p.Format != show.Table {
		return err
	}
	if pinned {
		_, err = fmt.Fprintf(a.out, "verified here for network %s\n", id)
	} else {
		_, err = fmt.Fprintf(a.out, "consistent with itself, for network %s; give --network to compare\n", id)
	}
	return err
}
