//go:build !linux

package e2e

import "testing"

func smallDisk(t *testing.T, _, _ string) {
	t.Helper()
	t.Skip("a small disk can be mounted on Linux only")
}

func readOnly(*testing.T, string, bool) {}
