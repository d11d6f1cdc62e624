package devnet

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"github.com/aweigh/aweigh/etcd/etcdpb"
	"github.com/aweigh/aweigh/internal/certs"
	"github.com/aweigh/aweigh/scope"
)

// tlsDir is the directory of a secure devnet's certificates.
const tlsDir = "tls"

// Admin names the files by which a client reaches the ports of a secure devnet, as root of etcd's users and as
// administrator of the API.
type Admin struct {
	CA, Cert, Key string
}

// files are those of a secure devnet.
type files struct {
	server certs.Files
	admin  Admin
}

func filesIn(dir string) files {
	in := func(name string) string { return filepath.Join(dir, tlsDir, name) }
	return files{certs.Files{Cert: in("server.crt"), Key: in("server.key")}, Admin{CA: in("ca.crt"), Cert: in("admin.crt"), Key: in("admin.key")}}
}

// issue makes the certificates of a secure devnet that are not there, or end soon.
func issue(dir string) (Admin, error) {
	ca, err := certs.NewAuthority(filepath.Join(dir, tlsDir))
	if err != nil {
		return Admin{}, err
	}
	_, errServer := ca.Server("server")
	_, errAdmin := ca.Client("admin", scope.RootName)
	return filesIn(dir).admin, errors.Join(errServer, errAdmin)
}

// flags are the settings of a node's port for clients of etcd, for its command line.
func (x Node) flags() []string {
	if x.Etcd == "" || x.EtcdCA == "" {
		if x.Etcd == "" {
			return nil
		}
		return []string{"--etcd-listen", x.Etcd}
	}
	return []string{"--etcd-listen", x.Etcd, "--etcd-cert-file", x.EtcdCert, "--etcd-key-file", x.EtcdKey, "--etcd-trusted-ca-file", x.EtcdCA}
}

// config is the settings of a client with the administrator's certificate.
func (a Admin) config() (*tls.Config, error) {
	data, err := os.ReadFile(a.CA)
	if err != nil {
		return nil, fmt.Errorf("devnet: %w", err)
	}
	own, err := tls.LoadX509KeyPair(a.Cert, a.Key)
	if err != nil {
		return nil, fmt.Errorf("devnet: %w", err)
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: x509.NewCertPool(), Certificates: []tls.Certificate{own}}
	c.RootCAs.AppendCertsFromPEM(data)
	return c, nil
}

// EnableUsers enables the users of etcd, with the root user whose certificate is the administrator's, unless they are
// enabled. It waits until the first node serves etcd's API.
func (n *Network) EnableUsers(ctx context.Context) error {
	settings, err := n.Admin.config()
	if err != nil {
		return err
	}
	conn, err := grpc.NewClient(n.Nodes[0].Etcd, grpc.WithTransportCredentials(credentials.NewTLS(settings)))
	if err != nil {
		return fmt.Errorf("devnet: %w", err)
	}
	defer conn.Close()
	users := etcdpb.NewAuthClient(conn)
	for {
		err := enable(ctx, users)
		if err == nil || ctx.Err() != nil || status.Code(err) != codes.Unavailable {
			return err
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}

func enable(ctx context.Context, users etcdpb.AuthClient) error {
	now, err := users.AuthStatus(ctx, &etcdpb.AuthStatusRequest{})
	if err != nil || now.Enabled {
		return err
	}
	root := &etcdpb.AuthUserAddRequest{Name: scope.RootName, Options: &etcdpb.UserAddOptions{NoPassword: true}}
	if _, err := users.UserAdd(ctx, root); err != nil && status.Code(err) != codes.FailedPrecondition { // it is there
		return err
	}
	if _, err := users.UserGrantRole(ctx, &etcdpb.AuthUserGrantRoleRequest{User: scope.RootName, Role: scope.RootName}); err != nil {
		return err
	}
	_, err = users.AuthEnable(ctx, &etcdpb.AuthEnableRequest{})
	return err
}
