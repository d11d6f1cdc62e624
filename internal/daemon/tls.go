package daemon

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/netip"

	"github.com/aweigh/aweigh/internal/certs"
	"github.com/aweigh/aweigh/internal/home"
)

// etcdTLS is what clients of etcd are shown, nil for no TLS. Errors about the files
// wrap ErrSettings.
func etcdTLS(dir home.Dir, s home.Settings, log *slog.Logger) (*tls.Config, error) {
	files := certs.Files{Cert: s.EtcdCert, Key: s.EtcdKey, ClientCA: s.EtcdCA, Revoked: s.EtcdCRL}
	if s.EtcdAuto {
		var hosts []string
		host, _, err := net.SplitHostPort(s.Etcd)
		if a, bad := netip.ParseAddr(host); err == nil && host != "" && (bad != nil || !a.IsUnspecified()) {
			hosts = append(hosts, host)
		}
		if files, err = certs.Auto(dir.TLS(), hosts...); err != nil {
			return nil, err
		}
	}
	if files.IsZero() {
		return nil, nil
	}
	c, err := certs.Server(files, log)
	if errors.Is(err, certs.ErrFiles) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		err = fmt.Errorf("%w: TLS for clients of etcd: %w", ErrSettings, err)
	}
	return c, err
}
