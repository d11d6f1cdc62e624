package certs

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"
)

const (
	autoFor   = 365 * 24 * time.Hour // how long a certificate made here is good
	autoRenew = autoFor / 12         // what must be left of it at a start
)

// Auto is a certificate in a directory that vouches for itself, for trying TLS: made
// if there is none, or if it ends soon, for the hosts and for this machine. Clients
// take it as the issuer to trust.
func Auto(dir string, hosts ...string) (Files, error) {
	f := Files{Cert: filepath.Join(dir, "auto.crt"), Key: filepath.Join(dir, "auto.key")}
	if own, err := tls.LoadX509KeyPair(f.Cert, f.Key); err == nil && time.Until(own.Leaf.NotAfter) > autoRenew && covers(own.Leaf, hosts) {
		return f, nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Files{}, fmt.Errorf("certs: %w", err)
	}
	serial, err := newSerial()
	if err != nil {
		return Files{}, err
	}
	now := time.Now()
	c := x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "aweigh, made by itself"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(autoFor),
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true, IsCA: true,
		DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
	}
	if name, err := os.Hostname(); err == nil && name != "localhost" {
		c.DNSNames = append(c.DNSNames, name)
	}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip == nil && !slices.Contains(c.DNSNames, host) {
			c.DNSNames = append(c.DNSNames, host)
		} else if ip != nil && !slices.ContainsFunc(c.IPAddresses, ip.Equal) {
			c.IPAddresses = append(c.IPAddresses, ip)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, &c, &c, key.Public(), key)
	if err != nil {
		return Files{}, fmt.Errorf("certs: %w", err)
	}
	return f, f.save(der, key)
}

// save writes a certificate and its key, the key first.
func (f Files) save(der []byte, key *ecdsa.PrivateKey) error {
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return fmt.Errorf("certs: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(f.Key), 0o700); err != nil {
		return fmt.Errorf("certs: %w", err)
	}
	if err := write(f.Key, "PRIVATE KEY", secret, 0o600); err != nil {
		return err
	}
	return write(f.Cert, "CERTIFICATE", der, 0o644)
}

// newSerial is a serial number that no other certificate has.
func newSerial() (*big.Int, error) {
	n, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, fmt.Errorf("certs: %w", err)
	}
	return n, nil
}

func covers(c *x509.Certificate, hosts []string) bool {
	for _, host := range hosts {
		if c.VerifyHostname(host) != nil {
			return false
		}
	}
	return true
}

func write(name, kind string, der []byte, mode os.FileMode) error {
	fresh := name + ".new"
	if err := os.WriteFile(fresh, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), mode); err != nil {
		return fmt.Errorf("certs: %w", err)
	}
	if err := os.Rename(fresh, name); err != nil {
		return fmt.Errorf("certs: %w", err)
	}
	return nil
}
