package doctor

import (
	"fmt"

	"github.com/aweigh/aweigh/internal/show"
)

const (
	fewFiles  = 512       // open files with which a node cannot do: its store alone takes 256
	someFiles = 2048      // with which it can serve 256 peers
	tinyBytes = 256 << 20 // memory with which a node gets killed: caches and buffers of its store take 128 MiB
	fewBytes  = 768 << 20
)

// checkLimits reports whether the system allows the node enough open files and
// enough memory.
func (e *exam) checkLimits() {
	whose := "a node started from here"
	if e.pid != 0 {
		whose = fmt.Sprintf("process %d", e.pid)
	}
	do := "LimitNOFILE=16384 in its systemd unit, or ulimit -n 16384 where it is started"
	switch limit, used, err := openFiles(e.pid); {
	case err != nil:
		e.skip("open files", err.Error())
	case limit < fewFiles:
		e.fail("open files", fmt.Sprintf("%s may open %d", whose, limit), do)
	case limit < someFiles || used > limit*4/5:
		e.warn("open files", fmt.Sprintf("%s may open %d, and has %d open", whose, limit, used), do)
	default:
		e.ok("open files", fmt.Sprintf("%s may open %d", whose, limit))
	}
	switch m, err := memoryOf(e.pid); {
	case err != nil:
		e.skip("memory", err.Error())
	case m.killed > 0:
		e.warn("memory", fmt.Sprintf("killed in its group for lack of memory: %s; the limit is %s", show.Count(m.killed, "process"), size(m.limit)),
			"raise the limit of the container, or MemoryMax of the systemd unit")
	case m.limit < tinyBytes:
		e.fail("memory", fmt.Sprintf("%s may use %s", whose, size(m.limit)), fmt.Sprintf("give it %s or more", size(fewBytes)))
	case m.limit < fewBytes:
		e.warn("memory", fmt.Sprintf("%s may use %s", whose, size(m.limit)), fmt.Sprintf("give it %s or more if it serves many peers or writes", size(fewBytes)))
	default:
		e.ok("memory", fmt.Sprintf("%s may use %s", whose, size(m.limit)))
	}
}

// memory is the memory that a process may use.
type memory struct {
	limit  uint64 // bytes: of the machine, or less by its control group
	killed uint64 // processes of the group killed for lack of memory
}
