package daemon

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aweigh/aweigh/internal/home"
)

// TestSettingsOfTLSGoTogether: half of them is an error, and so is TLS without a
// port; a port for clients asks them for certificates, or is said to be insecure.
func TestSettingsOfTLSGoTogether(t *testing.T) {
	t.Parallel()
	issuers := filepath.Join(t.TempDir(), "issuers.yaml")
	if err := os.WriteFile(issuers, []byte("- issuer: https://issuer.example\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	good := home.Settings{Listen: []string{"/ip4/127.0.0.1/tcp/0"}, Etcd: "127.0.0.1:0"}
	for name, c := range map[string]struct {
		change func(*home.Settings)
		ok     bool
	}{
		"none":                     {func(*home.Settings) {}, true},
		"certificate and key":      {func(s *home.Settings) { s.EtcdCert, s.EtcdKey = "a", "b" }, true},
		"made by itself":           {func(s *home.Settings) { s.EtcdAuto = true }, true},
		"open, for those with one": {func(s *home.Settings) { s.Etcd, s.EtcdCert, s.EtcdKey, s.EtcdCA = "0.0.0.0:1", "a", "b", "c" }, true},
		"open, for users":          {func(s *home.Settings) { s.Etcd, s.EtcdCert, s.EtcdKey = "0.0.0.0:1", "a", "b" }, true},
		"passwords without TLS":    {func(s *home.Settings) { s.Etcd = "0.0.0.0:1" }, false},
		"open, as it shall be":     {func(s *home.Settings) { s.Etcd, s.API, s.Insecure = "0.0.0.0:1", "0.0.0.0:2", true }, true},
		"an API without TLS":       {func(s *home.Settings) { s.API = "127.0.0.1:0" }, false},
		"an API for certificates":  {func(s *home.Settings) { s.API, s.APICert, s.APIKey, s.APICA = "0.0.0.0:1", "a", "b", "c" }, true},
		"an API with TLS alone":    {func(s *home.Settings) { s.API, s.APICert, s.APIKey = "127.0.0.1:0", "a", "b" }, false},
		"the same, and insecure":   {func(s *home.Settings) { s.API, s.APICert, s.APIKey, s.Insecure = "127.0.0.1:0", "a", "b", true }, false},
		"an API for tokens":        {func(s *home.Settings) { s.API, s.APICert, s.APIKey, s.OIDC = "0.0.0.0:1", "a", "b", issuers }, true},
		"tokens of no issuer":      {func(s *home.Settings) { s.OIDC = os.DevNull }, false},
		"tokens without a file":    {func(s *home.Settings) { s.OIDC = issuers + ".none" }, false},
		"certificates and no API":  {func(s *home.Settings) { s.APICert, s.APIKey, s.APICA = "a", "b", "c" }, false},
		"admins, of certificates": {func(s *home.Settings) {
			s.API, s.APICert, s.APIKey, s.APICA, s.APIAdmins = "0.0.0.0:1", "a", "b", "c", []string{"d"}
		}, true},
		"admins without certificates": {func(s *home.Settings) { s.API, s.Insecure, s.APIAdmins = "127.0.0.1:0", true, []string{"d"} }, false},
		"certificate without key":     {func(s *home.Settings) { s.EtcdCert = "a" }, false},
		"issuers alone":               {func(s *home.Settings) { s.EtcdCA = "a" }, false},
		"made by itself and a file":   {func(s *home.Settings) { s.EtcdAuto, s.EtcdCert, s.EtcdKey = true, "a", "b" }, false},
		"revoked, of issuers":         {func(s *home.Settings) { s.EtcdCert, s.EtcdKey, s.EtcdCA, s.EtcdCRL = "a", "b", "c", "d" }, true},
		"revoked, of nobody":          {func(s *home.Settings) { s.EtcdCert, s.EtcdKey, s.EtcdCRL = "a", "b", "d" }, false},
		"larger requests":             {func(s *home.Settings) { s.EtcdMost = 4 << 20 }, true},
		"too large requests":          {func(s *home.Settings) { s.EtcdMost = 8 << 20 }, false},
		"requests of nobody":          {func(s *home.Settings) { s.Etcd, s.EtcdMost = "", 4<<20 }, false},
		"frequent progress":           {func(s *home.Settings) { s.EtcdTells = "1s" }, true},
		"progress all the time":       {func(s *home.Settings) { s.EtcdTells = "1ms" }, false},
		"progress at no time":         {func(s *home.Settings) { s.EtcdTells = "soon" }, false},
		"compaction by time":          {func(s *home.Settings) { s.Etcd, s.Compact = "", [2]string{"periodic", "24h"} }, true},
		"compaction by nothing":       {func(s *home.Settings) { s.Compact = [2]string{"daily", "24h"} }, false},
		"TLS where nothing is served": {func(s *home.Settings) { s.Etcd, s.EtcdAuto = "", true }, false},
	} {
		s := good
		c.change(&s)
		if err := Check(s); (err == nil) != c.ok || err != nil && !errors.Is(err, ErrSettings) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestAdminsThatNoCallerIsAreRefused: a text that reads as an identity, and that no caller has, is a mistake.
func TestAdminsThatNoCallerIsAreRefused(t *testing.T) {
	t.Parallel()
	for text, ok := range map[string]bool{
		"alice": true, "cert:cn:alice": true, "cert:dns:a.example": true, "cert:spiffe://corp/ops": true, "cert:uri:x:y": true,
		"oidc:https://issuer.example#alice": true, "user:alice": true, "ops: on call": true,
		"cert:alice": false, "cert:": false, "oidc:alice": false, "user:": false, "local:1000": false, "local:me": false, "anonymous": false,
		"cert:cn:": false, "cert:dns:*.example": false,
	} {
		s := home.Settings{Listen: []string{"/ip4/127.0.0.1/tcp/0"}, API: "0.0.0.0:1", APICert: "a", APIKey: "b", APICA: "c", APIAdmins: []string{text}}
		err := Check(s)
		if ok != (err == nil) || err != nil && (!errors.Is(err, ErrSettings) || !strings.Contains(err.Error(), "cert:cn:NAME")) {
			t.Errorf("%q: %v", text, err)
		}
	}
}
