package doctor

import (
	"strings"

	"github.com/aweigh/aweigh/internal/daemon"
)

// checkCallers reports whether clients reach the node without showing who they are.
func (e *exam) checkCallers() {
	if e.Problem != nil {
		e.skip("callers", "the settings make no sense")
		return
	}
	open := daemon.InsecurePorts(e.Settings)
	if e.runs() {
		open = e.status.Insecure
	}
	switch {
	case len(open) > 0:
		e.warn("callers", "insecure: "+strings.Join(open, " and ")+" take clients without certificates",
			"leave api-listen out, or set api-cert, api-key and api-client-ca, and for etcd etcd-trusted-ca-file; then remove insecure")
	case e.Settings.Insecure:
		e.warn("callers", "insecure is set, and no port needs it", "remove it")
	default:
		e.ok("callers", "the node's user, by its socket, and clients that show who they are")
	}
}
