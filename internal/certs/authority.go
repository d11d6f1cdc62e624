package certs

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"path/filepath"
	"time"
)

// authorityFor is how long an authority's own certificate is good.
const authorityFor = 10 * autoFor

// Authority issues certificates for one machine, for trying out TLS. Its files are ca.crt and ca.key in a directory.
type Authority struct {
	dir string
	own tls.Certificate
}

// NewAuthority opens the authority of a directory, or makes one if there is none.
func NewAuthority(dir string) (*Authority, error) {
	a := &Authority{dir: dir}
	f := a.files("ca")
	own, err := tls.LoadX509KeyPair(f.Cert, f.Key)
	if err == nil {
		a.own = own
		return a, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s and %s: %w", ErrFiles, f.Cert, f.Key, err)
	}
	c := x509.Certificate{
		Subject:  pkix.Name{CommonName: "aweigh, authority of " + dir},
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign, IsCA: true, MaxPathLenZero: true,
	}
	if err := a.issue(f, &c, authorityFor); err != nil {
		return nil, err
	}
	if a.own, err = tls.LoadX509KeyPair(f.Cert, f.Key); err != nil {
		return nil, fmt.Errorf("certs: %w", err)
	}
	return a, nil
}

// Cert is the file of the authority's own certificate.
func (a *Authority) Cert() string { return a.files("ca").Cert }

func (a *Authority) files(name string) Files {
	return Files{Cert: filepath.Join(a.dir, name+".crt"), Key: filepath.Join(a.dir, name+".key")}
}

// Server is a certificate for servers of this machine at loopback addresses, in the files NAME.crt and NAME.key.
func (a *Authority) Server(name string) (Files, error) {
	return a.lasting(name, &x509.Certificate{
		Subject:  pkix.Name{CommonName: name},
		DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
}

// Client is a certificate for a client with a common name, in the files NAME.crt and NAME.key.
func (a *Authority) Client(name, common string) (Files, error) {
	return a.lasting(name, &x509.Certificate{
		Subject: pkix.Name{CommonName: common}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
}

// lasting issues a certificate, unless there is one of this authority that does not end soon.
func (a *Authority) lasting(name string, c *x509.Certificate) (Files, error) {
	f := a.files(name)
	if own, err := tls.LoadX509KeyPair(f.Cert, f.Key); err == nil && time.Until(own.Leaf.NotAfter) > autoRenew &&
		own.Leaf.Subject.CommonName == c.Subject.CommonName && own.Leaf.CheckSignatureFrom(a.own.Leaf) == nil {
		return f, nil
	}
	c.KeyUsage = x509.KeyUsageDigitalSignature
	return f, a.issue(f, c, autoFor)
}

// issue signs a certificate and writes it with its new key. The first is the authority's own.
func (a *Authority) issue(f Files, c *x509.Certificate, lasts time.Duration) (err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("certs: %w", err)
	}
	if c.SerialNumber, err = newSerial(); err != nil {
		return err
	}
	now := time.Now()
	c.NotBefore, c.NotAfter, c.BasicConstraintsValid = now.Add(-time.Hour), now.Add(lasts), true
	parent, by := c, any(key)
	if a.own.Leaf != nil {
		parent, by = a.own.Leaf, a.own.PrivateKey
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, key.Public(), by)
	if err != nil {
		return fmt.Errorf("certs: %w", err)
	}
	return f.save(der, key)
}
