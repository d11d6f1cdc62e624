package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/aweigh/aweigh/sim/scenario"
)

// isSeed matches the SEED of a drawn world.
var isSeed = regexp.MustCompile(`^[0-9]+$`)

// readScenario is the scenario that an argument FILE|NAME|SEED names.
func readScenario(arg string) (scenario.Scenario, error) {
	switch {
	case isSeed.MatchString(arg):
		s, err := drawn(arg)
		s.Name = "drawn"
		return s, err
	case isFile(arg):
		return scenarioFile(arg)
	}
	s, err := scenario.FromLibrary(arg)
	if err != nil {
		return s, fmt.Errorf("%w: no such file, and %s", errUsage, reason(err))
	}
	return s, nil
}

// drawn is the world that an argument SEED stands for.
func drawn(arg string) (scenario.Scenario, error) {
	seed, err := strconv.ParseUint(arg, 10, 64)
	if err != nil || seed == 0 {
		return scenario.Scenario{}, fmt.Errorf("%w: a seed is a number from 1 to 18446744073709551615, not %s", errUsage, arg)
	}
	return scenario.Draw(seed), nil
}

// isFile reports whether an argument is meant to be a file.
func isFile(arg string) bool {
	if strings.ContainsAny(arg, `/\`) || slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(arg)) {
		return true
	}
	_, err := os.Stat(arg)
	return err == nil
}

// scenarioFile reads a scenario. One without a name gets that of its file.
func scenarioFile(path string) (scenario.Scenario, error) {
	f, err := os.Open(path)
	if err != nil {
		return scenario.Scenario{}, fmt.Errorf("%w: %w", errUsage, err)
	}
	defer f.Close()
	source, err := io.ReadAll(io.LimitReader(f, scenario.MaxSource+1))
	if err != nil {
		return scenario.Scenario{}, fmt.Errorf("%w: %w", errUsage, err)
	}
	s, err := scenario.Decode(source)
	if s.Name == "" {
		s.Name = strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
	}
	return s, refused(path, err)
}

// refused is an error about a scenario: its place, then the reason.
func refused(where string, err error) error {
	if !errors.Is(err, scenario.ErrInvalid) {
		return err
	}
	return fmt.Errorf("%w: %s: %s", errUsage, where, reason(err))
}

// reason is what is wrong with a scenario.
func reason(err error) string {
	return strings.TrimPrefix(err.Error(), scenario.ErrInvalid.Error()+": ")
}

// completeScenario completes names of the library, or files.
func completeScenario(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	for _, n := range scenario.Library() {
		names = append(names, n.Name+"\t"+n.About)
	}
	return names, cobra.ShellCompDirectiveDefault
}
