package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// Machine is where and with what it was measured. What is not known is empty.
type Machine struct {
	Date       string            `json:"date"`
	Commit     string            `json:"commit"`
	CPU        string            `json:"cpu"`
	Cores      int               `json:"cores"`
	MemoryGiB  int               `json:"memory_gib"`
	Kernel     string            `json:"kernel"`
	Filesystem string            `json:"filesystem"` // where the members keep their data
	Go         string            `json:"go"`
	Load       float64           `json:"load_before"` // average of the last minute
	Versions   map[string]string `json:"versions"`    // of the others
}

// text is the machine in a sentence, without its end.
func (m Machine) text() string {
	return fmt.Sprintf("%s at commit %s: %d × %s, %d GiB, %s, %s, %s", m.Date, m.Commit, m.Cores, m.CPU, m.MemoryGiB, m.Filesystem, m.Kernel, m.Go)
}

// lookAround finds out about this machine, and about the file system of a directory.
func lookAround(ctx context.Context, dir string) Machine {
	m := Machine{
		Date: time.Now().UTC().Format(time.DateOnly), Commit: "unknown", CPU: runtime.GOARCH, Cores: runtime.NumCPU(),
		Kernel: runtime.GOOS, Filesystem: "unknown file system", Go: runtime.Version(), Versions: make(map[string]string),
	}
	if text, err := output(ctx, nil, "git", "describe", "--always", "--dirty", "--exclude=*"); err == nil {
		m.Commit = strings.TrimSpace(string(text))
	}
	m.CPU = orElse(field(read("/proc/cpuinfo"), "model name"), m.CPU)
	if kib, _, ok := strings.Cut(field(read("/proc/meminfo"), "MemTotal"), " "); ok {
		n, _ := strconv.Atoi(kib)
		m.MemoryGiB = (n + 1<<19) >> 20
	}
	if release := strings.TrimSpace(read("/proc/sys/kernel/osrelease")); release != "" {
		m.Kernel = "Linux " + release
	}
	if abs, err := filepath.Abs(dir); err == nil {
		m.Filesystem = orElse(filesystem(read("/proc/self/mounts"), abs), m.Filesystem)
	}
	if load := strings.Fields(read("/proc/loadavg")); len(load) > 0 {
		m.Load, _ = strconv.ParseFloat(load[0], 64)
	}
	return m
}

// read is the text of a file, empty where there is none.
func read(file string) string {
	text, _ := os.ReadFile(file)
	return string(text)
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// field is the value of the first line "name : value".
func field(text, name string) string {
	for line := range strings.Lines(text) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// filesystem is the kind of the file system that holds a path, of the text of
// /proc/self/mounts: that of the longest mount point above it, the last if
// several are mounted there.
func filesystem(mounts, path string) (kind string) {
	longest := -1
	for line := range strings.Lines(mounts) {
		fields := strings.Fields(line)
		if len(fields) < 3 {
			continue
		}
		point := strings.TrimSuffix(fields[1], "/")
		if (path == point || strings.HasPrefix(path, point+"/")) && len(point) >= longest {
			kind, longest = fields[2], len(point)
		}
	}
	return kind
}
