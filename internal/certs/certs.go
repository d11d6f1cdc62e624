// Package certs serves TLS by certificates in files, and reads them again when
// they change, so that they can be renewed while connections stay.
package certs

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"sync"
	"time"
)

// Files name a server's certificate and key, and the issuers of its clients'
// certificates, as PEM.
type Files struct {
	Cert     string // the server's certificate, followed by those of its issuers
	Key      string // of the certificate
	ClientCA string // issuers of clients' certificates, which are required then; empty: none is required
	Optional bool   // clients without a certificate are served as well
	Revoked  string // revocation lists of those issuers (RFC 5280, section 5), as PEM or one as DER; empty: none
}

// IsZero reports whether there shall be no TLS.
func (f Files) IsZero() bool { return f == Files{Optional: f.Optional} }

// ErrFiles is wrapped by errors about the content of the files.
var ErrFiles = errors.New("certs: bad files")

// Server is the settings of a server with the certificates of the files: TLS 1.2 or later, and the protocols that it
// negotiates, the preferred one first. Each handshake sees the files as they are; while they cannot be read, it sees
// the last content, and the error is logged.
func Server(f Files, log *slog.Logger, protocols ...string) (*tls.Config, error) {
	return ServerBy(time.Now, f, log, protocols...)
}

// ServerBy is Server with a clock, by which the certificates of clients end.
func ServerBy(now func() time.Time, f Files, log *slog.Logger, protocols ...string) (*tls.Config, error) {
	r := &reloading{now: now, files: f, log: log, protocols: protocols}
	if err := r.load(); err != nil {
		return nil, err
	}
	return &tls.Config{
		MinVersion:         tls.VersionTLS12,
		GetConfigForClient: r.forClient,
	}, nil
}

// reloading holds the content read last.
type reloading struct {
	now       func() time.Time
	files     Files
	log       *slog.Logger
	protocols []string

	mu      sync.Mutex
	looked  time.Time // when the files were last looked at
	stamps  [4]stamp
	config  *tls.Config
	trusted map[string]bool // certificates of clients' issuers, as DER
	lists   revoked
}

// stamp tells one content of a file from another.
type stamp struct {
	changed time.Time
	size    int64
}

func (r *reloading) current() *tls.Config {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.looked = time.Now()
	if stamps := r.look(); stamps != r.stamps {
		if err := r.load(); err != nil {
			r.stamps = stamps // say so once
			r.log.Error("the TLS certificates cannot be read; the ones read before stay in use", "error", err)
		} else {
			r.log.Info("TLS certificates were read again", "file", r.files.Cert)
		}
	}
	return r.config
}

func (r *reloading) look() (all [4]stamp) {
	for i, name := range []string{r.files.Cert, r.files.Key, r.files.ClientCA, r.files.Revoked} {
		if info, err := os.Stat(name); err == nil {
			all[i] = stamp{info.ModTime(), info.Size()}
		}
	}
	return all
}

func (r *reloading) load() error {
	stamps := r.look() // before reading, so that a change meanwhile is one
	f := r.files
	if f.Revoked != "" && f.ClientCA == "" {
		return fmt.Errorf("%w: a list of revoked certificates without the issuers of clients' certificates", ErrFiles)
	}
	if f.Cert == "" || f.Key == "" {
		return fmt.Errorf("%w: a certificate takes its key, and a key its certificate; clients can be asked for theirs only with both", ErrFiles)
	}
	own, err := tls.LoadX509KeyPair(f.Cert, f.Key)
	if err != nil {
		if _, missing := errors.AsType[*fs.PathError](err); missing {
			return fmt.Errorf("certs: %w", err)
		}
		return fmt.Errorf("%w: %s and %s: %w", ErrFiles, f.Cert, f.Key, err)
	}
	c := &tls.Config{
		MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{own}, NextProtos: r.protocols, Time: r.now,
	}
	var trusted map[string]bool
	var lists revoked
	if f.ClientCA != "" {
		data, err := os.ReadFile(f.ClientCA)
		if err != nil {
			return fmt.Errorf("certs: %w", err)
		}
		if c.ClientCAs = x509.NewCertPool(); !c.ClientCAs.AppendCertsFromPEM(data) {
			return fmt.Errorf("%w: %s holds no certificate", ErrFiles, f.ClientCA)
		}
		trusted = make(map[string]bool)
		for _, issuer := range issuersIn(data) {
			trusted[string(issuer.Raw)] = true
		}
		c.ClientAuth = tls.RequireAndVerifyClientCert
		if f.Optional {
			c.ClientAuth = tls.VerifyClientCertIfGiven
		}
		if f.Revoked != "" {
			if lists, err = readRevoked(f.Revoked, data); err != nil {
				return err
			}
			c.VerifyConnection = lists.check // of resumed sessions too
		}
	}
	r.stamps, r.config, r.trusted, r.lists = stamps, c, trusted, lists
	return nil
}
