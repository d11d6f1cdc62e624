package daemon

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/netip"
	"time"

	"github.com/aweigh/aweigh/internal/certs"
	"github.com/aweigh/aweigh/internal/home"
)

// etcdTLS is what clients of etcd are shown, nil for no TLS. Errors about the files
// wrap ErrSettings.
func etcdTLS(dir home.Dir, s home.Settings, now func() time.Time, log *slog.Logger) (*tls.Config, error) {
	files := etcdFiles(s)
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
	return serverTLS("clients of etcd", files, now, log, "http/1.1", "h2")
}

// apiTLS is what clients of api-listen are shown, nil for no TLS.
func apiTLS(s home.Settings, now func() time.Time, log *slog.Logger) (*tls.Config, error) {
	files := apiFiles(s)
	if files.IsZero() {
		return nil, nil
	}
	return serverTLS("api-listen", files, now, log, "h2", "http/1.1")
}

func serverTLS(what string, files certs.Files, now func() time.Time, log *slog.Logger, protocols ...string) (*tls.Config, error) {
	c, err := certs.ServerBy(now, files, log, protocols...)
	if errors.Is(err, certs.ErrFiles) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		err = fmt.Errorf("%w: TLS for %s: %w", ErrSettings, what, err)
	}
	return c, err
}
