package certs

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
)

// revoked are the serial numbers of certificates that their issuers revoked, by issuer.
type revoked map[string]map[string]bool

// ErrRevoked refuses a client whose certificate, or one of its issuers', is revoked.
var ErrRevoked = errors.New("certs: the certificate is revoked")

// mostRevoked bounds a file of lists, in bytes.
const mostRevoked = 64 << 20

// readRevoked reads the lists in a file. Each must be signed by one of the issuers, given as PEM. A list whose next
// update is overdue counts, as in etcd: its certificates stay revoked.
func readRevoked(file string, issuers []byte) (revoked, error) {
	info, err := os.Stat(file)
	if err == nil && info.Size() > mostRevoked {
		return nil, fmt.Errorf("%w: %s has %d bytes, at most %d are taken", ErrFiles, file, info.Size(), mostRevoked)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("certs: %w", err)
	}
	by := issuersIn(issuers)
	var lists [][]byte
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		if block.Type == "X509 CRL" {
			lists = append(lists, block.Bytes)
		}
	}
	if len(lists) == 0 {
		lists = [][]byte{data} // DER, as etcd takes it
	}
	all := revoked{}
	for _, der := range lists {
		l, err := x509.ParseRevocationList(der)
		if err != nil {
			return nil, fmt.Errorf("%w: %s holds no list of revoked certificates: %w", ErrFiles, file, err)
		}
		if err := signed(l, by); err != nil {
			return nil, fmt.Errorf("%w: %s: %w", ErrFiles, file, err)
		}
		of := all[string(l.RawIssuer)]
		if of == nil {
			of = map[string]bool{}
			all[string(l.RawIssuer)] = of
		}
		for i := range l.RevokedCertificateEntries {
			of[l.RevokedCertificateEntries[i].SerialNumber.String()] = true
		}
	}
	return all, nil
}

// issuersIn returns the certificates in a file of PEM.
func issuersIn(data []byte) (all []*x509.Certificate) {
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		if c, err := x509.ParseCertificate(block.Bytes); err == nil {
			all = append(all, c)
		}
	}
	return all
}

// signed reports whether one of the issuers signed a list.
func signed(l *x509.RevocationList, by []*x509.Certificate) error {
	err := errors.New("none of the trusted issuers has the name of the list's")
	for _, c := range by {
		if !bytes.Equal(c.RawSubject, l.RawIssuer) {
			continue
		}
		if err = l.CheckSignatureFrom(c); err == nil {
			return nil
		}
	}
	return err
}

// check refuses a client if every chain of its certificate has a revoked one.
func (r revoked) check(s tls.ConnectionState) error {
	for _, chain := range s.VerifiedChains {
		if !r.any(chain) {
			return nil
		}
	}
	if len(s.VerifiedChains) == 0 { // the client showed none, where it need not
		return nil
	}
	return ErrRevoked
}

func (r revoked) any(chain []*x509.Certificate) bool {
	for _, c := range chain {
		if r[string(c.RawIssuer)][c.SerialNumber.String()] {
			return true
		}
	}
	return false
}
