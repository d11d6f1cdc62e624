package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aweigh/aweigh/internal/show"
)

// TestHintsCanBeTyped: without aweigh in PATH, hints name the command to type instead.
func TestHintsCanBeTyped(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	want := "write " + show.Word(self)
	if strings.Contains(self, "go-build") { // where "go run" makes programs, too
		want = "go install ./cmd/aweigh"
	}
	if got := callHint(); !strings.Contains(got, want) {
		t.Errorf("without: %q", got)
	}
	if err := os.WriteFile(filepath.Join(dir, "aweigh"), []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if got := callHint(); got != "" {
		t.Errorf("with: %q", got)
	}
}
