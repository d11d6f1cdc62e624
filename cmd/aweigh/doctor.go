package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/aweigh/aweigh/internal/doctor"
	"github.com/aweigh/aweigh/internal/home"
	"github.com/aweigh/aweigh/internal/show"
)

// errUnwell is returned when the doctor found something that fails.
var errUnwell = errors.New("a check fails: see above for the fix")

func (a *app) doctor() *cobra.Command {
	c := &cobra.Command{
		Use: "doctor", Short: "Look for common mistakes around a node", Args: cobra.NoArgs,
		Long: "Examines the node of a directory, whether it runs or not: settings, permissions, keys,\n" +
			"genesis and store, other processes, limits, disk, ports, clock, and its health. Each line\n" +
			"is a finding with the fix, printed as soon as it is known. The checks take a few\n" +
			"seconds, in which it writes to the disk up to 200 times. Run it as the node's user,\n" +
			"with the flags and variables of the node.\n\n" +
			"It changes nothing of the node, but with --fix the permissions of the directory and of the keys.\n" +
			"The files with which it measures the disk are removed.\n\n" +
			"With --state it reads the whole store of a node that is stopped, and checks all of it against\n" +
			"the network's final blocks, as \"aweigh restore\" does with a backup. It prints its progress.",
		Example: "  aweigh doctor --data-dir /var/lib/aweigh --state\n  aweigh doctor --data-dir /var/lib/aweigh\n  aweigh doctor --ntp pool.ntp.org\n  aweigh doctor -o json",
	}
	file := c.Flags().String("config", "", "settings, YAML (default: config.yaml in the data directory)")
	ntp := c.Flags().String("ntp", "", "time server to compare the clock with, HOST or HOST:PORT")
	fix := c.Flags().Bool("fix", false, "correct permissions")
	state := c.Flags().Bool("state", false, "read the whole store, and check it against final blocks")
	output := outputFlag(c)
	settings := nodeFlags(defaultListen...)
	c.Flags().AddFlagSet(settings)
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		format, err := formatOf(*output, false)
		if err != nil {
			return err
		}
		dir, s, err := nodeSettings(settings, *file)
		if err != nil { // a finding like others, so go on with the flags
			name, flagErr := settings.GetString("data-dir")
			if flagErr != nil {
				return flagErr
			}
			dir = home.Dir(name)
		}
		late := time.AfterFunc(time.Hour, func() {})
		findings := doctor.Examine(cmd.Context(), doctor.Subject{
			Dir: dir, Settings: s, Problem: err, Version: version(), NTP: *ntp, Fix: *fix, State: *state, Audited: a.audited(),
			Begun: func(part string) {
				late.Stop()
				late = time.AfterFunc(time.Second, func() { fmt.Fprintf(a.err, "aweigh: still examining: %s\n", part) })
			},
			Found: func(f doctor.Finding) {
				if format == show.Table {
					a.finding(f)
				}
			},
		})
		late.Stop()
		if format == show.JSON {
			if err := a.findings(findings); err != nil {
				return err
			}
		}
		if doctor.Worst(findings) == doctor.Fail {
			return errUnwell
		}
		return nil
	}
	return c
}

// findings writes all findings as JSON.
func (a *app) findings(all []doctor.Finding) error {
	for i := range all {
		all[i].Found = message(errors.New(all[i].Found))
	}
	return show.Printer{Out: a.out}.JSON(struct {
		Worst    doctor.Verdict   `json:"worst"`
		Findings []doctor.Finding `json:"findings"`
	}{doctor.Worst(all), all})
}

// finding writes one line.
func (a *app) finding(f doctor.Finding) {
	do := ""
	if f.Do != "" {
		do = " -> " + show.Line(f.Do)
	}
	fmt.Fprintf(a.out, "%-11s  %-11s  %s%s\n", f.Verdict, f.Check, show.Line(message(errors.New(f.Found))), do)
}
