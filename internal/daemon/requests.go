package daemon

import (
	"fmt"
	"log/slog"
	"path/filepath"

	"github.com/aweigh/aweigh/internal/home"
	"github.com/aweigh/aweigh/internal/requestlog"
)

// checkRequests reports whether the settings state what is recorded of requests.
func checkRequests(s home.Settings) error {
	if s.AuditFile == "" && len(s.AuditLevels) > 0 {
		return fmt.Errorf("%w: audit-level, and no audit-file", ErrSettings)
	}
	if _, err := requestlog.ParseRules(s.AuditLevels); err != nil {
		return fmt.Errorf("%w: audit-level: %w", ErrSettings, err)
	}
	return nil
}

// openRequests opens the record of requests, nil without audit-file. A relative name is one in the node's directory.
func openRequests(dir home.Dir, s home.Settings, name string, log *slog.Logger) (*requestlog.Log, error) {
	if s.AuditFile == "" {
		return nil, nil
	}
	rules, err := requestlog.ParseRules(s.AuditLevels)
	if err != nil {
		return nil, err
	}
	path := s.AuditFile
	if !filepath.IsAbs(path) {
		path = filepath.Join(string(dir), path)
	}
	l, err := requestlog.Open(requestlog.Config{Path: path, Rules: rules, Node: name, Log: log})
	if err != nil {
		return nil, fmt.Errorf("%w: audit-file: %w", ErrSettings, err)
	}
	return l, nil
}
