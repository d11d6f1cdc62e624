package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// ticksPerSecond is the unit of times in /proc/PID/stat: USER_HZ, 100 on every
// architecture that Linux shows to user space.
const ticksPerSecond = 100

// parseStat is the processor time of a process, user and system, of the text of
// its /proc/PID/stat. The name in it may hold spaces and parentheses.
func parseStat(text string) (time.Duration, error) {
	fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
	const state, utime, stime = 3, 14, 15 // as proc(5) counts them
	if len(fields) <= stime-state {
		return 0, fmt.Errorf("%w: /proc/PID/stat has %d fields", errOutput, len(fields))
	}
	var ticks uint64
	for _, field := range []string{fields[utime-state], fields[stime-state]} {
		n, err := strconv.ParseUint(field, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("%w: /proc/PID/stat: %w", errOutput, err)
		}
		ticks += n
	}
	return time.Duration(ticks) * time.Second / ticksPerSecond, nil
}

// processorTime is that of all processes together.
func processorTime(pids []int) (sum time.Duration, err error) {
	for _, pid := range pids {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			return 0, fmt.Errorf("compare: processor time: %w", err)
		}
		t, err := parseStat(string(text))
		if err != nil {
			return 0, err
		}
		sum += t
	}
	return sum, nil
}

// parseBusy is how long all processors together were not idle, of the text of
// /proc/stat. Time that a hypervisor took away counts.
func parseBusy(text string) (time.Duration, error) {
	const idle, iowait, steal = 4, 5, 8 // of the fields of the first line; later ones are parts of the first
	line, _, _ := strings.Cut(text, "\n")
	fields := strings.Fields(line)
	if len(fields) <= steal || fields[0] != "cpu" {
		return 0, fmt.Errorf("%w: /proc/stat starts with %q", errOutput, line)
	}
	var ticks uint64
	for i := 1; i <= steal; i++ {
		n, err := strconv.ParseUint(fields[i], 10, 64)
		if err != nil {
			return 0, fmt.Errorf("%w: /proc/stat: %w", errOutput, err)
		}
		if i != idle && i != iowait {
			ticks += n
		}
	}
	return time.Duration(ticks) * time.Second / ticksPerSecond, nil
}

// use is processor time up to a moment.
type use struct {
	at                       time.Time
	members, generator, busy time.Duration
}

// measureUse fails where there is no /proc.
func measureUse(members []int) (u use, err error) {
	u.at, u.generator = time.Now(), generatorTime()
	if u.members, err = processorTime(members); err != nil {
		return use{}, err
	}
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return use{}, fmt.Errorf("compare: processor time: %w", err)
	}
	u.busy, err = parseBusy(string(text))
	return u, err
}

// others is the part of so many processors that neither the members nor the
// load generator used since before, from 0 to 1.
func (u use) others(before use, processors int) float64 {
	ours := u.members - before.members + u.generator - before.generator
	foreign := u.busy - before.busy - ours
	return min(max(0, foreign.Seconds()/(u.at.Sub(before.at).Seconds()*float64(processors))), 1)
}
