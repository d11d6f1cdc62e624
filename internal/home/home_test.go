package home

import (
	"os"
	"reflect"
	"testing"
)

func TestSettingsSurviveTheirFile(t *testing.T) {
	for name, want := range map[string]Settings{
		"empty": {},
		"full": {
			Name: `a "quoted": # name`, Listen: []string{"/ip4/127.0.0.1/tcp/1", "/ip4/127.0.0.1/udp/1/quic-v1"},
			Announce: []string{"/dns/example.org/tcp/1"}, Bootstrap: []string{"/ip4/127.0.0.1/tcp/2/p2p/x"},
			Relay: true, Relays: []string{"/ip4/127.0.0.1/tcp/3/p2p/x"}, Follow: []string{"/a/", "/b/c/"}, PerIP: 40, WatchMemory: 16, AnswerMemory: 32, CopyMemory: 8,
			API: "127.0.0.1:0", APICert: "c.crt", APIKey: "c.key", APICA: "c-ca.crt", APICRL: "c.crl", APIAdmins: []string{"alice"}, Insecure: true, Etcd: "127.0.0.1:2379", EtcdURLs: []string{"https://a.example:2379"},
			EtcdCert: "a.crt", EtcdKey: "a.key", EtcdCA: "ca.crt", EtcdAuto: true, EtcdCRL: "crl.pem", EtcdMost: 2 << 20, EtcdTells: "1m", Compact: [2]string{"revision", "1000"}, Metrics: "0.0.0.0:9177", LogLevel: "debug", LogFormat: "json",
			AuditFile: "audit.jsonl", AuditLevels: []string{"=none", "/secrets/=request"},
		},
	} {
		d := Dir(t.TempDir())
		if err := d.SaveSettings(want); err != nil {
			t.Fatal(err)
		}
		got, err := d.ReadSettings()
		if err != nil {
			t.Fatal(err)
		}
		for _, list := range []*[]string{&got.Listen, &got.Announce, &got.Bootstrap, &got.Relays, &got.Follow,
			&got.EtcdURLs, &got.APIAdmins, &got.AuditLevels} {
			if len(*list) == 0 {
				*list = nil
			}
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, want %+v", name, got, want)
		}
		if err := d.SaveSettings(Settings{Name: "other"}); err != nil {
			t.Fatal(err)
		}
		if got, err = d.ReadSettings(); err != nil || got.Name != "other" || len(got.Bootstrap) > 0 {
			t.Errorf("%s: then got %+v, %v", name, got, err)
		}
	}
}

func TestKeysAreMadeOnceAndForTheirOwnerAlone(t *testing.T) {
	d := Dir(t.TempDir())
	if _, _, err := d.Keys(); err == nil {
		t.Error("keys where there are none")
	}
	first, err := d.NewKey(d.Identity())
	if err != nil {
		t.Fatal(err)
	}
	again, err := d.NewKey(d.Identity())
	if err != nil || again.Public().ID() != first.Public().ID() {
		t.Errorf("another key: %v, %v", again, err)
	}
	if info, err := os.Stat(d.Identity()); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	identity, anchor, err := d.Keys()
	if err != nil || anchor != nil || identity.Public().ID() != first.Public().ID() {
		t.Errorf("got %v, %v, %v", identity, anchor, err)
	}
}
