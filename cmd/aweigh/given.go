package main

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/aweigh/aweigh/internal/config"
)

// mayBeEmpty are the flags for which an empty text means something: words for people, and the absence of an address.
var mayBeEmpty = []string{"because", "comment", "reason", "aweigh devnet --etcd-listen"}

// checkFlags refuses values that make no sense, of the flags that were given.
func checkFlags(c *cobra.Command) error {
	if err := checkGiven(c); err != nil {
		return err
	}
	return checkNumbers(c)
}

// checkGiven refuses flags that were given without a value, such as that of a variable of the shell that is not set:
// without the flag, the command would do something else.
func checkGiven(c *cobra.Command) (err error) {
	c.Flags().Visit(func(f *pflag.Flag) {
		how := config.Empty(f)
		if err != nil || how == "" || slices.Contains(mayBeEmpty, f.Name) ||
			slices.Contains(mayBeEmpty, c.CommandPath()+" --"+f.Name) {
			return
		}
		off := ""
		if c.Flags().Lookup("config") != nil { // the file may set it
			off = ". What the configuration file sets is turned off in the file"
		}
		err = fmt.Errorf("%w: --%s %s: give it a value, or leave it out%s", errUsage, f.Name, how, off)
	})
	return err
}
