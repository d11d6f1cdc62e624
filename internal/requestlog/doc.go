// Package requestlog is a node's own record of what its clients asked for, which the lineage does not have: requests
// that were refused and, where that is configured, reads. It is a file of JSON lines, which is rotated by size. A line
// has the caller, the call and the keys, and never a value.
//
// No request waits for the file or fails because of it. Lines that find no room in memory, or that cannot be written,
// are counted.
package requestlog
