package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"

	"github.com/knadh/koanf/v2"
	"github.com/spf13/pflag"

	"github.com/aweigh/aweigh/client"
)

// reachFlags are the settings of a client command by which it reaches nodes. The names of the files are etcdctl's.
func reachFlags(f *pflag.FlagSet) {
	f.StringSlice("api", nil, "addresses of nodes: unix:// and the path of a socket, host:port, or https://host:port\n(default: the sockets of those that run on this machine)")
	f.String("cacert", "", "PEM file of the issuers of nodes' certificates (default: the system's)")
	f.String("cert", "", "PEM file of the certificate that nodes are shown")
	f.String("key", "", "PEM file of its key")
	f.String("token-file", "", "file of the token that nodes are shown, such as that of a service account; read again when it\nchanges (default: at https:// addresses, that of \"aweigh login\")")
}

// reachOf is what nodes at some addresses are shown.
func reachOf(k *koanf.Koanf, addresses []string) (c client.Credentials, err error) {
	if c.TLS, err = tlsOf(k); err != nil {
		return c, err
	}
	c.Token, err = tokenOf(k, addresses)
	return c, err
}

// tlsOf is the settings for connections with TLS, nil if they name no file.
func tlsOf(k *koanf.Koanf) (*tls.Config, error) {
	issuers, cert, key := k.String("cacert"), k.String("cert"), k.String("key")
	if issuers == "" && cert == "" && key == "" {
		return nil, nil
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if issuers != "" {
		data, err := os.ReadFile(issuers)
		if err != nil {
			return nil, err
		}
		if c.RootCAs = x509.NewCertPool(); !c.RootCAs.AppendCertsFromPEM(data) {
			return nil, fmt.Errorf("%w: cacert: %s holds no certificate", errUsage, issuers)
		}
	}
	switch {
	case (cert == "") != (key == ""):
		return nil, fmt.Errorf("%w: cert and key go together", errUsage)
	case cert != "":
		own, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			return nil, fmt.Errorf("%w: %s and %s: %w", errUsage, cert, key, err)
		}
		// A server lists the issuers that it takes. The certificate goes there also if it is of another: the server's
		// refusal says more than that there was none.
		c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &own, nil }
	}
	return c, nil
}
