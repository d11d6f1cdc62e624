package doctor

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"time"
)

const (
	fullBytes  = 256 << 20 // free, below which the next compaction may stop the node
	scarceFree = 2 << 30   // free, below which it is time to act
	scarcePart = 20        // one part in so many of the disk, likewise

	syncs    = 200                    // measured
	syncTime = 2 * time.Second        // at most
	slowSync = 25 * time.Millisecond  // at the 99th percentile
	badSync  = 100 * time.Millisecond // at the median: with these, a view takes longer than its leader is waited for
)

// disk is the file system of a directory.
type disk struct {
	kind        string // tmpfs, ext4, …; empty if it is not known
	risk        string // why a node should not be kept there; empty if nothing is known
	free, total uint64 // bytes, for this user
	names       uint64 // files that may still be made; 0 with no total if there is no such limit
	allNames    uint64
}

// checkDisk looks at the space, the kind and the speed of the disk.
func (e *exam) checkDisk() {
	d, err := diskOf(string(e.Dir))
	switch {
	case err != nil:
		e.skip("disk space", err.Error())
	case d.free < fullBytes:
		e.fail("disk space", size(d.free)+" are free", "make room at once: a full disk stops the node")
	case d.allNames > 0 && d.names < 1000:
		e.fail("disk space", fmt.Sprintf("%d more files can be made", d.names), "make room at once: remove files that are not needed")
	case d.free < scarceFree || d.free < d.total/scarcePart:
		e.warn("disk space", fmt.Sprintf("%s of %s are free", size(d.free), size(d.total)), "make room: blocks and history are kept for good")
	default:
		e.ok("disk space", fmt.Sprintf("%s of %s are free", size(d.free), size(d.total)))
	}
	switch {
	case err != nil || d.kind == "":
		e.skip("file system", "this system does not report its kind")
	case d.risk != "":
		e.warn("file system", fmt.Sprintf("%s: %s", d.kind, d.risk), "keep the directory of an anchor on a local disk: its record of ballots must outlive every restart")
	default:
		e.ok("file system", d.kind)
	}
	half, worst, err := measure(string(e.Dir))
	found := fmt.Sprintf("writing 4 KiB durably takes %s at the median, %s at the 99th percentile",
		half.Round(time.Microsecond), worst.Round(time.Microsecond))
	do := "give the directory a disk of its own, with power-loss protection: every ballot waits for it"
	switch {
	case err != nil:
		e.fail("disk speed", fmt.Sprintf("cannot write: %v", err), "make the directory writable for the node's user, and see that the disk is not full or read-only")
	case half > badSync:
		e.fail("disk speed", found, do)
	case worst > slowSync:
		e.warn("disk speed", found, do)
	default:
		e.ok("disk speed", found)
	}
}

// measure writes and syncs as the store's log does: into space that the file
// has already.
func measure(dir string) (half, worst time.Duration, err error) {
	f, err := os.CreateTemp(dir, ".doctor-*")
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, f.Close(), os.Remove(f.Name())) }()
	page := make([]byte, 4<<10)
	for i := range page {
		page[i] = byte(i * 7) // no zeros, which some disks do not store
	}
	for range syncs {
		if _, err := f.Write(page); err != nil {
			return 0, 0, err
		}
	}
	if err := f.Sync(); err != nil {
		return 0, 0, err
	}
	began := time.Now()
	var times []time.Duration
	for i := range syncs {
		start := time.Now()
		if start.Sub(began) > syncTime {
			break
		}
		if _, err := f.WriteAt(page, int64(i*len(page))); err != nil {
			return 0, 0, err
		}
		if err := syncData(f); err != nil {
			return 0, 0, err
		}
		times = append(times, time.Since(start))
	}
	slices.Sort(times)
	return times[len(times)/2], times[(len(times)-1)*99/100], nil
}
