package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/aweigh/aweigh/scope"
)

// trusting holds a user's knowledge of a network beside its identity.
type trusting struct {
	roster string
	period time.Duration
}

// trustingPeriod is how long a genesis alone is enough to know the anchors by. Longer
// ago, keys of anchors that left may be in other hands.
const trustingPeriod = 90 * 24 * time.Hour

// errOld means that a chain of rosters begins too long ago.
var errOld = errors.New("the network's first anchors are known from too long ago")

// trustingFlags add the flags of commands that follow rosters from the genesis.
func (a *app) trustingFlags(c *cobra.Command) {
	c.Flags().StringVar(&a.trusts.roster, "trusted", "", "a recent roster, EPOCH:HASH, as \"aweigh trust verify\" prints it at a node that you trust")
	a.periodFlag(c)
}

// periodFlag adds the flag for the age up to which a genesis is trusted without a roster.
func (a *app) periodFlag(c *cobra.Command) {
	c.Flags().DurationVar(&a.trusts.period, "trusting-period", trustingPeriod, "how old the genesis may be where no roster is --trusted; 0: any age")
}

// pin is the roster that is trusted, if one is.
func (t *trusting) pin() (p scope.Trusted, ok bool, err error) {
	if t.roster == "" {
		return p, false, nil
	}
	if p, err = scope.ParseTrusted(t.roster); err != nil {
		err = fmt.Errorf("%w: --trusted: %w", errUsage, err)
	}
	return p, true, err
}

// young reports whether a genesis alone is enough to begin with.
func (t *trusting) young(g scope.Genesis) error {
	if age := time.Since(g.Time.Time()); t.period > 0 && age > t.period {
		return fmt.Errorf("%w: the genesis is of %s, more than %s ago, and the keys of anchors from then can sign another history; "+
			"name a recent roster by --trusted EPOCH:HASH, as \"aweigh trust verify\" prints it at a node that you trust, or allow more by --trusting-period",
			errOld, g.Time.Time().UTC().Format(time.DateOnly), t.period)
	}
	return nil
}

// check reports whether a chain of rosters is one to begin with.
func (t *trusting) check(g scope.Genesis, chain []scope.Handover) error {
	p, ok, err := t.pin()
	if err != nil {
		return err
	}
	if ok {
		return p.In(g, chain)
	}
	return t.young(g)
}
