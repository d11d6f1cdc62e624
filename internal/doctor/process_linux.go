package doctor

import (
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/aweigh/aweigh/internal/running"
)

// ticks is the kernel's unit of process times in a second (USER_HZ).
const ticks = 100

// started is since when the node's process runs, in words.
func (e *exam) started() string {
	fields := running.Stat(e.pid)
	if len(fields) < 20 {
		return ""
	}
	start, err := strconv.ParseInt(fields[19], 10, 64) // field 22 of proc(5)
	if err != nil {
		return ""
	}
	uptime, err := os.ReadFile("/proc/uptime")
	if err != nil {
		return ""
	}
	words := strings.Fields(string(uptime))
	if len(words) == 0 {
		return ""
	}
	up, err := strconv.ParseFloat(words[0], 64)
	if err != nil {
		return ""
	}
	age := time.Duration(up*float64(time.Second)) - time.Duration(start)*time.Second/ticks
	return ", started " + ago(time.Now().Add(-age))
}
