package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/aweigh/aweigh/internal/audit"
	"github.com/aweigh/aweigh/internal/show"
	"github.com/aweigh/aweigh/scope"
	"github.com/aweigh/aweigh/votes"
)

// trailFlags are the flags of verify that are about trails.
type trailFlags struct {
	file, checkpoint, prefix string
	witnesses                *pflag.Flag
	bare                     bool
}

func (f *trailFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.file, "audit", "", "verify this trail, which \"aweigh audit tail\" wrote")
	c.Flags().StringVar(&f.checkpoint, "checkpoint", "",
		"with --audit: a file of \"aweigh checkpoint\", a state that the trail must go through")
	c.Flags().String("witnesses", "",
		"with --checkpoint: file with the witnesses that signed it, and how many must have (C2SP: tlog-policy)")
	f.witnesses = c.Flags().Lookup("witnesses")
	c.Flags().StringVar(&f.prefix, "prefix", "",
		"with --audit: the trail is of the keys that begin so, and may hide entries")
	c.Flags().BoolVar(&f.bare, "bare-times", false,
		"with --audit: accept lines whose block and time nothing proves, of a node with --prune")
}

// chosen reports whether a trail is to be verified, and not the proof that args name.
func (f *trailFlags) chosen(args []string) (bool, error) {
	switch {
	case f.file == "" && (f.checkpoint != "" || f.bare || f.prefix != "" || f.witnesses.Changed):
		return false, fmt.Errorf("%w: --checkpoint, --witnesses, --prefix and --bare-times are about a trail, which --audit names", errUsage)
	case f.checkpoint == "" && f.witnesses.Changed:
		return false, fmt.Errorf("%w: --witnesses is about a note, which --checkpoint names", errUsage)
	case (f.file == "") == (len(args) == 0):
		return false, fmt.Errorf("%w: name the file of a proof, or one of a trail with --audit", errUsage)
	}
	return f.file != "", nil
}

// verifyTrail verifies a trail, and prints what it shows.
func (a *app) verifyTrail(p show.Printer, f *trailFlags, network string, pinned bool) (err error) {
	file, err := os.Open(f.file)
	if err != nil {
		return err
	}
	defer file.Close()
	o := audit.Options{BareTimes: f.bare, Prefix: []byte(f.prefix), Trust: func(x *scope.Ancestry) error { return a.trusts.check(x.Root()) }}
	if pinned {
		id, err := networkOf(network)
		if err != nil {
			return err
		}
		o.Network = &id
	}
	var witnesses []string // that signed the checkpoint
	if f.checkpoint != "" {
		c, note, err := readCheckpoint(f.checkpoint)
		if err != nil {
			return err
		}
		if policy, err := witnessesOf(f.witnesses); err != nil {
			return err
		} else if policy != nil {
			if witnesses, err = policy.Check(note); err != nil {
				return fmt.Errorf("%w: %s: %w", scope.ErrProof, f.checkpoint, err)
			}
		}
		o.Note = &c
		o.NoteSigned = func(epochs []*scope.Epoch) error { return cosignedIn(epochs, c.Origin, note) }
	}
	r, err := audit.Verify(file, o)
	if err != nil {
		return fmt.Errorf("%s: %w", f.file, err)
	}
	if err := p.Trail(r, witnesses); err != nil || p.Format != show.Table {
		return err
	}
	id := r.Genesis.Network()
	if pinned {
		_, err = fmt.Fprintf(a.out, "verified here for network %s\n", id)
	} else {
		_, err = fmt.Fprintf(a.out, "consistent with itself, for network %s; give --network to compare\n", id)
	}
	return err
}

// cosignedIn reports whether anchors of one of a scope's epochs signed a checkpoint, so many that not all of them lie.
func cosignedIn(epochs []*scope.Epoch, origin string, note []byte) error {
	if want := scope.LogOrigin(epochs[0].Scope); origin != want {
		return fmt.Errorf("%w: it is of %s, and the trail of %s", scope.ErrProof, origin, want)
	}
	for i := len(epochs) - 1; i >= 0; i-- {
		e, weight := epochs[i], uint64(0)
		keys := make([]votes.PublicKey, len(e.Roster.Anchors))
		for j := range e.Roster.Anchors {
			keys[j] = e.Roster.Anchors[j].Key
		}
		for _, c := range votes.CosignedBy(note, keys...) {
			weight += e.Roster.Weights.Of(c.Key.ID())
		}
		if weight > e.Policy.Rules.Mode.FaultBudget(e.Roster.Weights.Total()) {
			return nil
		}
	}
	return errors.Join(scope.ErrProof, errors.New("the anchors of no epoch signed it with more weight than may lie"))
}
