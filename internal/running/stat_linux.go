package running

import (
	"fmt"
	"os"
	"strings"
)

// Stat are the kernel's fields about a process from its state on, which is field 3 of proc(5); nil if there are none.
func Stat(pid int) []string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil
	}
	// The name of the program, in brackets, may hold anything.
	return strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
}

// ended reports whether a process has ended and its parent has not yet asked how: it is a zombie.
func ended(pid int) bool {
	fields := Stat(pid)
	return len(fields) > 0 && (fields[0] == "Z" || fields[0] == "X")
}
