package client

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"strings"
)

// unconnected explains why a node's socket does not take a connection.
func unconnected(op *net.OpError) string {
	switch {
	case errors.Is(op, fs.ErrPermission):
		return fmt.Sprintf("%v is for the user that runs the node, and for root: run the command as that user, or use an address of the node with TLS", op.Addr)
	case errors.Is(op, fs.ErrNotExist):
		return fmt.Sprintf("there is no socket %v: the node does not run, or has another data directory", op.Addr)
	}
	return fmt.Sprintf("no node listens at %v: %v", op.Addr, op.Err)
}

// uncertified explains an error about certificates, after which the node got no request; "" for others.
func uncertified(err error) string {
	// Package tls reports the alert by which a server refuses a certificate so (RFC 8446, section 6), in a type of its
	// own.
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "remote error" && strings.Contains(op.Err.Error(), "certificate") {
		return fmt.Sprintf("the node refuses this client: %v; it takes clients with a certificate of an issuer in its api-client-ca (--cert and --key)", op.Err)
	}
	if unknown, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return fmt.Sprintf("the certificate of the node does not verify: %v; --cacert names the file of its issuer", unknown.Err)
	}
	if failed, ok := errors.AsType[*handshakeError](err); ok {
		return fmt.Sprintf("%v; is there TLS at this address?", failed)
	}
	return ""
}
