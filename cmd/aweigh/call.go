package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/aweigh/aweigh/internal/show"
)

// callHint reports what to type for this program where its bare name, which all
// hints have, would not be found; it is empty where that is.
func callHint() string {
	if _, err := exec.LookPath("aweigh"); err == nil {
		return ""
	}
	const missing = "There is no aweigh in PATH: "
	path, err := os.Executable()
	if err != nil || strings.Contains(path, "go-build") { // where "go run" makes programs
		return missing + "\"go install ./cmd/aweigh\" puts it into $(go env GOPATH)/bin; or write \"go run ./cmd/aweigh\" for it."
	}
	return fmt.Sprintf("%swrite %s for it.", missing, show.Word(path))
}
