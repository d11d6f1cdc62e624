//go:build !unix || solaris || illumos || aix

package doctor

// lockHolder is the process that has locked a file; this system does not tell.
func lockHolder(string) int { return 0 }
