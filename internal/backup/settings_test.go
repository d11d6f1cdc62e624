package backup

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/aweigh/aweigh/internal/home"
)

// hostile are settings in which each key that a backup must not bring from a stranger has a value.
const hostile = `name: solo
listen: [/ip4/127.0.0.1/tcp/4177]
follow: [/a/, /b/]
log-level: debug
relay: true
api-listen: 0.0.0.0:4178
api-cert: /x/cert
api-key: /x/key
api-client-ca: /x/ca
api-client-crl: /x/crl
api-admins: [mallory, eve]
oidc-issuers: /x/issuers
etcd-listen: 0.0.0.0:2379
etcd-announce: [https://example.org:2379]
etcd-auto-tls: true
max-request-bytes: 4096
insecure: true
metrics-listen: 0.0.0.0:9177
audit-file: /etc/cron.d/x
audit-level: [/=request]
from-a-newer-version: 7
`

// withSettings is a backup with settings, and the name of its node.
func withSettings(t *testing.T, text string) (dir, signer string) {
	t.Helper()
	dir, m, identity := made(t)
	if err := os.WriteFile(filepath.Join(dir, "config.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	m.Files = slices.DeleteFunc(m.Files, func(f File) bool { return f.Name == "config.yaml" })
	m.Files = append(m.Files, fileOf(t, dir, "config.yaml"))
	sign(t, dir, m, identity)
	return dir, m.Node
}

// TestStrangersSettingsAreLeftOut: of the backup of an unknown node, no setting stays that opens a port for clients,
// weakens who they are, or names a file; and the result lists each that does not.
func TestStrangersSettingsAreLeftOut(t *testing.T) {
	dir, _ := withSettings(t, hostile)
	for _, observer := range []bool{false, true} {
		to := home.Dir(filepath.Join(t.TempDir(), "node"))
		r, err := Restorer{To: to, Signer: Anyone, Observer: observer}.Restore(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		s, err := to.ReadSettings()
		if err != nil {
			t.Fatal(err)
		}
		name, listen := "solo", "/ip4/127.0.0.1/tcp/4177"
		if observer {
			name, listen = "solo-observer", "/ip4/127.0.0.1/tcp/0"
		}
		if s.Name != name || !slices.Equal(s.Listen, []string{listen}) || !slices.Equal(s.Follow, []string{"/a/", "/b/"}) || s.LogLevel != "debug" {
			t.Errorf("settings that do no harm are gone: %+v", s)
		}
		raw, err := os.ReadFile(to.Config())
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(raw)) {
			if name, _, _ := strings.Cut(line, ":"); strings.Contains(line, ":") && line[0] != '#' && line[0] != ' ' && !slices.Contains(harmless, name) {
				t.Errorf("as observer %v, a stranger sets %s", observer, line)
			}
		}
		left := make(map[string]string)
		for _, x := range r.Left {
			left[x.Name] = x.Value
		}
		for name, want := range map[string]string{
			"audit-file": "/etc/cron.d/x", "insecure": "true", "api-admins": "mallory,eve", "api-listen": "0.0.0.0:4178", "from-a-newer-version": "7",
			"audit-level": "/=request", "max-request-bytes": "4096",
		} {
			if left[name] != want {
				t.Errorf("left out is %s: %q, want %q", name, left[name], want)
			}
		}
		if len(left) != strings.Count(hostile, "\n")-4 {
			t.Errorf("left out are %v", left)
		}
	}
}

// TestObserversRecordNothingForTheOriginal: an observer beside the node that was backed up does not write the node's
// file of requests. The node itself keeps all of its settings.
func TestObserversRecordNothingForTheOriginal(t *testing.T) {
	dir, node := withSettings(t, "name: solo\naudit-file: /var/log/requests\naudit-level: [/=request]\napi-admins: [alice]\n")
	for _, observer := range []bool{false, true} {
		to := home.Dir(filepath.Join(t.TempDir(), "node"))
		r, err := Restorer{To: to, Signer: node, Observer: observer}.Restore(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		s, err := to.ReadSettings()
		if err != nil {
			t.Fatal(err)
		}
		if kept := s.AuditFile != "" && len(s.AuditLevels) > 0; kept == observer || len(s.APIAdmins) != 1 || len(r.Left) > 0 != observer {
			t.Errorf("as observer %v: %q, %v, left out %v", observer, s.AuditFile, s.AuditLevels, r.Left)
		}
	}
}
