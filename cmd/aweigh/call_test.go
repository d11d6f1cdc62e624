package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestHintsCanBeTyped: who has no aweigh in PATH is told what to type instead.
func TestHintsCanBeTyped(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	want := "write " + shellWord(self)
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

func TestShellsReadWordsBack(t *testing.T) {
	for _, word := range []string{"", "riga", "no word since May", "it's $HOME; `x` \"\\", "--x", "/a/b"} {
		out, err := exec.Command("sh", "-c", "printf %s "+shellWord(word)).Output()
		if err != nil || string(out) != word {
			t.Errorf("%q: %q, %v", word, out, err)
		}
	}
}
