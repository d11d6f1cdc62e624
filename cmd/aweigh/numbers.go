package main

import (
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/aweigh/aweigh/internal/devnet"
)

// bounds are the bounds of numbers on the command line; most is 0 where only
// the network knows.
var bounds = map[string]struct{ least, most int64 }{
	"rev": {1, 0}, "if-rev": {1, 0}, "limit": {1, 0}, "count": {1, 0}, "version": {1, 0}, "block": {1, 0},
	"nodes":        {1, devnet.MaxNodes},
	"epoch-blocks": {1, 0}, "probation": {0, 1<<31 - 1},
	"clients": {1, 0}, "connections": {1, 0}, "keys": {1, 0}, "key-size": {1, 1024}, "value-size": {0, 0}, "total": {1, 0},
	"rate":  {0, 0},
	"seeds": {1, 0}, "jobs": {1, 0},
}

// checkNumbers refuses numbers that make no sense, of the flags that were given.
func checkNumbers(c *cobra.Command) (err error) {
	c.Flags().Visit(func(f *pflag.Flag) {
		if err != nil {
			return
		}
		if d, parseErr := time.ParseDuration(f.Value.String()); f.Value.Type() == "duration" && parseErr == nil && d <= 0 && (d < 0 || f.Name != "trusting-period") {
			least := "more than 0"
			if f.Name == "trusting-period" { // where 0 means none
				least = "0 or more"
			}
			err = fmt.Errorf("%w: --%s is %s, not %s", errUsage, f.Name, least, d)
			return
		}
		b, ok := bounds[f.Name]
		n, parseErr := strconv.ParseInt(f.Value.String(), 10, 64)
		if !ok || parseErr != nil {
			return
		}
		switch {
		case b.most > 0 && (n < b.least || n > b.most):
			err = fmt.Errorf("%w: --%s is a number from %d to %d, not %d", errUsage, f.Name, b.least, b.most, n)
		case n < b.least:
			err = fmt.Errorf("%w: --%s is a number from %d on, not %d", errUsage, f.Name, b.least, n)
		}
	})
	return err
}
