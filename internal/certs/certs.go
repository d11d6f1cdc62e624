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
	c, err := r.load()
	if err != nil {
		return nil, err
	}
	r.content = c
	return &tls.Config{
		MinVersion:         tls.VersionTLS12,
		GetConfigForClient: r.forClient,
	}, nil
}

// reloading holds the content read last. A disk or a network that answers late holds up handshakes, and no connection.
type reloading struct {
	now       func() time.Time
	files     Files
	log       *slog.Logger
	protocols []string

	reading sync.Mutex // by one that reads files

	mu      sync.Mutex // not held while a file is looked at
	looked  time.Time  // when the files were last looked at
	content *content
}

// content is that of the files. An immutable value.
type content struct {
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

// current returns the content of the files as they are. It waits for them.
func (r *reloading) current() *content {
	if c := r.last(); r.look() == c.stamps {
		return c
	}
	r.reading.Lock()
	defer r.reading.Unlock()
	return r.again()
}

// again reads files that changed. The caller holds reading.
func (r *reloading) again() *content {
	now, stamps := time.Now(), r.look()
	c := r.last()
	if stamps != c.stamps {
		if read, err := r.load(); err != nil {
			was := *c
			was.stamps = stamps // say so once
			c = &was
			r.log.Error("the TLS certificates cannot be read; the ones read before stay in use", "error", err)
		} else {
			c = read
			r.log.Info("TLS certificates were read again", "file", r.files.Cert)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.content, r.looked = c, now
	return c
}

// last returns the content that was read last.
func (r *reloading) last() *content {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.content
}

func (r *reloading) look() (all [4]stamp) {
	for i, name := range []string{r.files.Cert, r.files.Key, r.files.ClientCA, r.files.Revoked} {
		if info, err := os.Stat(name); err == nil {
			all[i] = stamp{info.ModTime(), info.Size()}
		}
	}
	return all
}

func (r *reloading) load() (*content, error) {
	stamps := r.look() // before reading, so that a change meanwhile is one
	f := r.files
	if f.Revoked != "" && f.ClientCA == "" {
		return nil, fmt.Errorf("%w: a list of revoked certificates without the issuers of clients' certificates", ErrFiles)
	}
	if f.Cert == "" || f.Key == "" {
		return nil, fmt.Errorf("%w: a certificate takes its key, and a key its certificate; clients can be asked for theirs only with both", ErrFiles)
	}
	own, err := tls.LoadX509KeyPair(f.Cert, f.Key)
	if err != nil {
		if _, missing := errors.AsType[*fs.PathError](err); missing {
			return nil, fmt.Errorf("certs: %w", err)
		}
		return nil, fmt.Errorf("%w: %s and %s: %w", ErrFiles, f.Cert, f.Key, err)
	}
	c := &tls.Config{
		MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{own}, NextProtos: r.protocols, Time: r.now,
	}
	var trusted map[string]bool
	var lists revoked
	if f.ClientCA != "" {
		data, err := os.ReadFile(f.ClientCA)
		if err != nil {
			return nil, fmt.Errorf("certs: %w", err)
		}
		if c.ClientCAs = x509.NewCertPool(); !c.ClientCAs.AppendCertsFromPEM(data) {
			return nil, fmt.Errorf("%w: %s holds no certificate", ErrFiles, f.ClientCA)
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
				return nil, err
			}
			c.VerifyConnection = lists.check // of resumed sessions too
		}
	}
	return &content{stamps, c, trusted, lists}, nil
}
