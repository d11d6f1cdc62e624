package node

import (
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/node/audit"
	"github.com/aweigh/aweigh/scope"
)

var (
	// ErrForged is audit.ErrForged.
	ErrForged = audit.ErrForged
	// ErrUnvouched is audit.ErrUnvouched.
	ErrUnvouched = audit.ErrUnvouched
)

type (
	// AuditProgress says how far an audit is.
	AuditProgress = audit.Progress
	// AuditReport is what an audit read.
	AuditReport = audit.Report
)

// Audit is audit.Store.
func Audit(r kv.Reader, g scope.Genesis, tell func(AuditProgress) error) (*AuditReport, error) {
	return audit.Store(r, g, tell)
}

// Unhint is audit.Unhint.
var Unhint = audit.Unhint
