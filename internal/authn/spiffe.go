package authn

import (
	"crypto/x509"
	"errors"
	"strings"
)

// Characters of a SPIFFE ID (SPIFFE ID, sections 2.1 and 2.2).
const (
	domainChars  = "abcdefghijklmnopqrstuvwxyz0123456789.-_"
	segmentChars = "ABCDEFGHIJKLMNOPQRSTUVWXYZ" + domainChars
	maxDomain    = 255 // bytes of a trust domain's name
)

// checkSPIFFE takes the SPIFFE ID of a workload, spiffe://domain/path, in its only spelling. So it refuses user, port,
// query, fragment, percent-encoding, empty and dot segments, and an ID without a path, which names a signing authority
// (SPIFFE X509-SVID, section 3.1).
func checkSPIFFE(id string) error {
	rest, ok := strings.CutPrefix(id, certSPIFFE)
	domain, path, hasPath := strings.Cut(rest, "/")
	switch {
	case !ok:
		return errors.New("a SPIFFE ID begins with spiffe://")
	case domain == "" || len(domain) > maxDomain || strings.Trim(domain, domainChars) != "":
		return errors.New("the trust domain of its SPIFFE ID is empty, too long, or not of a-z, 0-9 and .-_")
	case !hasPath:
		return errors.New("its SPIFFE ID has no path, and so names no workload")
	}
	for segment := range strings.SplitSeq(path, "/") {
		if segment == "" || segment == "." || segment == ".." || strings.Trim(segment, segmentChars) != "" {
			return errors.New("the path of its SPIFFE ID has an empty or dot segment, or is not of a-z, A-Z, 0-9, .-_")
		}
	}
	return nil
}

// checkSVID takes the certificate of a workload, and refuses that of a signing authority (SPIFFE X509-SVID, sections
// 4.3 and 5.2).
func checkSVID(c *x509.Certificate) error {
	switch {
	case c.IsCA:
		return errors.New("it is the certificate of an authority")
	case c.KeyUsage&x509.KeyUsageDigitalSignature == 0:
		return errors.New("its key usage lacks digitalSignature, which an X.509-SVID has")
	case c.KeyUsage&(x509.KeyUsageCertSign|x509.KeyUsageCRLSign) != 0:
		return errors.New("its key usage has keyCertSign or cRLSign, which only authorities have")
	}
	return nil
}
