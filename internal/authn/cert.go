package authn

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"strings"
)

// Prefixes of the names of certificates, by the field that holds the name. So no field can pass for another: an
// authority that is restricted to some DNS names can still sign any common name.
const (
	certSPIFFE = "spiffe://"
	certURI    = "uri:"
	certDNS    = "dns:"
	certCommon = "cn:"
)

// Certs recognizes the callers that show a client certificate which TLS has verified.
type Certs struct{}

// Authenticate implements Authenticator.
func (Certs) Authenticate(_ context.Context, r *Request) (Identity, *Refusal) {
	if r.TLS == nil || len(r.TLS.PeerCertificates) == 0 {
		return Identity{}, nil
	}
	if len(r.TLS.VerifiedChains) == 0 || len(r.TLS.VerifiedChains[0]) == 0 {
		return Identity{}, &Refusal{Cert, Invalid, "this port does not verify client certificates: " +
			"connect without one"}
	}
	name, err := certName(r.TLS.VerifiedChains[0][0])
	if err != nil {
		return Identity{}, &Refusal{Cert, Name, "the client certificate names no caller: " + err.Error()}
	}
	id, err := NewIdentity(Cert, name)
	if err != nil {
		return Identity{}, &Refusal{Cert, Name, "the name in the client certificate cannot be an identity: " +
			"it is too long, or has a character that cannot be printed"}
	}
	return id, nil
}

// certName returns the name of a caller from its certificate, which the caller has verified. The first field that the
// certificate has decides:
//
//  1. The URI among the alternative names. It must be the only one. With the scheme spiffe it is the name and must be a
//     SPIFFE ID in an X.509-SVID (SPIFFE X509-SVID, sections 2, 3.1, 4.3 and 5.2). Another URI becomes uri:….
//  2. The first DNS name among them, in lower case: dns:…. It must not be a wildcard.
//  3. The common name of the subject: cn:….
//
// Errors quote nothing of the certificate.
func certName(c *x509.Certificate) (string, error) {
	switch {
	case len(c.URIs) > 1:
		return "", errors.New("it has several URIs among its alternative names; one is taken")
	case len(c.URIs) == 1:
		u := c.URIs[0]
		if !strings.EqualFold(u.Scheme, "spiffe") {
			return certURI + u.String(), nil
		}
		return u.String(), errors.Join(checkSPIFFE(u.String()), checkSVID(c))
	case len(c.DNSNames) > 0:
		name := strings.ToLower(c.DNSNames[0])
		return certDNS + name, checkDNS(name)
	case c.Subject.CommonName != "":
		return certCommon + c.Subject.CommonName, nil
	}
	return "", errors.New("it has no URI, no DNS name and no common name")
}

// checkCertName takes the names that certName returns.
func checkCertName(name string) error {
	for _, prefix := range []string{certURI, certDNS, certCommon} {
		rest, ok := strings.CutPrefix(name, prefix)
		switch {
		case !ok:
			continue
		case prefix == certDNS:
			return checkDNS(rest)
		}
		return checkText(rest)
	}
	if !strings.HasPrefix(name, certSPIFFE) {
		return fmt.Errorf("the name of a certificate begins with %s, %s, %s or %s",
			certSPIFFE, certURI, certDNS, certCommon)
	}
	return checkSPIFFE(name)
}

// checkDNS takes the DNS name of one host, in lower case.
func checkDNS(name string) error {
	for label := range strings.SplitSeq(name, ".") {
		if label == "" || strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			return errors.New("the DNS name is not that of one host")
		}
	}
	return nil
}
