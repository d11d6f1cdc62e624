package doctor

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// openFiles is how many files a process may open and has open; pid 0 is this
// one, for which the Go runtime has raised the limit as for any node.
func openFiles(pid int) (limit, used uint64, err error) {
	if pid == 0 {
		var r syscall.Rlimit
		if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &r); err != nil {
			return 0, 0, fmt.Errorf("getrlimit: %w", err)
		}
		return r.Cur, 0, nil
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/limits", pid))
	if err != nil {
		return 0, 0, err
	}
	_, line, _ := strings.Cut(string(text), "Max open files")
	fields := strings.Fields(line)
	if len(fields) == 0 {
		return 0, 0, fmt.Errorf("/proc/%d/limits does not report it", pid)
	}
	if limit, err = strconv.ParseUint(fields[0], 10, 64); err != nil {
		limit = math.MaxUint64 / 8 // unlimited
	}
	if open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid)); err == nil {
		used = uint64(len(open))
	}
	return limit, used, nil
}

// memoryOf is the memory that a process may use; pid 0 is this one.
func memoryOf(pid int) (m memory, err error) {
	who := "self"
	if pid != 0 {
		who = strconv.Itoa(pid)
	}
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return m, err
	}
	_, line, _ := strings.Cut(string(text), "MemTotal:")
	if fields := strings.Fields(line); len(fields) > 0 {
		kib, err := strconv.ParseUint(fields[0], 10, 64)
		if err != nil {
			return m, fmt.Errorf("/proc/meminfo: %w", err)
		}
		m.limit = kib << 10
	}
	groups, err := os.ReadFile("/proc/" + who + "/cgroup")
	if err != nil {
		return m, nil // no control groups: the machine is the limit
	}
	for _, g := range strings.Split(strings.TrimSpace(string(groups)), "\n") {
		parts := strings.SplitN(g, ":", 3) // number, controllers, path: cgroups(7)
		if len(parts) != 3 {
			continue
		}
		switch {
		case parts[0] == "0":
			m.climb("/sys/fs/cgroup", parts[2], "memory.max", "memory.events")
		case parts[1] == "memory":
			m.climb("/sys/fs/cgroup/memory", parts[2], "memory.limit_in_bytes", "memory.oom_control")
		}
	}
	return m, nil
}

// climb takes the least limit of a group and all above it, of which a container
// sees its own as the root. What cannot be read is no limit.
func (m *memory) climb(root, group, limit, events string) {
	for dir := filepath.Join(root, group); ; dir = filepath.Dir(dir) {
		if n, ok := number(filepath.Join(dir, limit), ""); ok {
			m.limit = min(m.limit, n)
		}
		if n, ok := number(filepath.Join(dir, events), "oom_kill "); ok && m.killed == 0 {
			m.killed = n
		}
		if len(dir) <= len(root) {
			return
		}
	}
}

// number is the number in a file behind a name at the start of a line.
func number(file, name string) (uint64, bool) {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, false
	}
	for _, line := range strings.Split(string(text), "\n") {
		if rest, ok := strings.CutPrefix(line, name); ok {
			n, err := strconv.ParseUint(strings.TrimSpace(rest), 10, 64)
			return n, err == nil
		}
	}
	return 0, false
}
